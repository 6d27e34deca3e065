// SPDX-License-Identifier: MIT
#include "hello.hpp"

#include "../core/words.hpp"
#include "place.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::string_view kHello = "sdma-meet", kAnswer = "sdma";
/// More is not an answer of a rank 0.
constexpr std::uint32_t kLongestAnswer = 16'000'000;

/// Sends, or receives, all bytes.
template <class Call>
std::optional<NoAnswer> whole(std::span<char> bytes, int socket, short event, Deadline d, Call call) {
  while (!bytes.empty()) {
    const auto n = call(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
    else if (n < 0 && errno == EINTR) continue;
    else if (n == 0 || errno != EAGAIN) return NoAnswer::ended;
    else if (!ready(socket, event, d)) return NoAnswer::late;
  }
  return {};
}
bool send_whole(int socket, std::string bytes, Deadline d) { return !whole(bytes, socket, POLLOUT, d, ::send); }

std::string_view take_field(std::string_view& rest) {
  const auto field = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  return field;
}

/// In front of the text of an answer.
struct AnswerHead {
  char name[4]{};
  std::uint32_t kind{}, bytes{};
};

}  // namespace

std::string bytes_of(const Hello& h) {
  std::string out;
  for (const auto& field : {std::string(kHello), std::to_string(h.protocol), h.version, std::to_string(h.rank),
                            std::to_string(h.size), std::to_string(h.socket), h.place, h.token})
    (out += field) += '\0';
  out.resize(kHelloBytes);
  return out;
}

std::optional<Hello> hello_from(std::string_view bytes) {
  if (take_field(bytes) != kHello) return {};
  const Hello own;
  const auto protocol = whole_number<std::uint32_t>(take_field(bytes));
  Hello h{.protocol = protocol.value_or(0), .version = std::string(take_field(bytes))};
  if (!protocol) return {};
  if (h.protocol != own.protocol) return h;
  for (auto* const n : {&h.rank, &h.size, &h.socket}) {
    const auto number = whole_number<std::uint32_t>(take_field(bytes));
    if (!number) return {};
    *n = *number;
  }
  h.place = take_field(bytes);
  h.token = take_field(bytes);
  return h;
}

bool send_hello(int socket, const Hello& h, Deadline d) { return send_whole(socket, bytes_of(h), d); }

bool send_answer(int socket, const Answer& a, Deadline d) {
  AnswerHead h{.kind = static_cast<std::uint32_t>(a.kind), .bytes = static_cast<std::uint32_t>(a.text.size())};
  std::memcpy(h.name, kAnswer.data(), sizeof h.name);
  std::string all(sizeof h, '\0');
  std::memcpy(all.data(), &h, sizeof h);
  return send_whole(socket, all + a.text, d);
}

Result<Answer, NoAnswer> receive_answer(int socket, Deadline d) {
  std::string all(sizeof(AnswerHead), '\0');
  if (const auto why = whole(all, socket, POLLIN, d, ::recv)) return *why;
  AnswerHead h;
  std::memcpy(&h, all.data(), sizeof h);
  if (std::string_view(h.name, sizeof h.name) != kAnswer || h.bytes > kLongestAnswer) return NoAnswer::other_words;
  Answer a{.kind = static_cast<Answer::Kind>(h.kind), .text = std::string(h.bytes, '\0')};
  if (const auto why = whole(a.text, socket, POLLIN, d, ::recv)) return *why;
  return a;
}

}}}  // namespace sdma::v0_3::detail
