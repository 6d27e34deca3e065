// SPDX-License-Identifier: MIT
#include "reception.hpp"

#include "../core/listed.hpp"
#include "place.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// More connections than ranks can have, of which none has said who it is.
constexpr std::size_t kStrangers = 64;

/// Two lines: why, and what to do.
Answer refuse(const std::string& why, std::string_view hint) {
  return {Answer::Kind::refused, fmt::format("{}\n{}", why, hint)};
}

}  // namespace

std::string absent_text(const std::vector<bool>& there) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> lacking;
  for (std::size_t r = 0; r < there.size(); ++r)
    if (!there[r]) lacking.push_back(std::to_string(r));
  const bool one = lacking.size() == 1;
  if (lacking.size() > kNamed) {
    const auto others = lacking.size() - kNamed + 1;
    lacking.resize(kNamed - 1);
    lacking.push_back(fmt::format("{} others", others));
  }
  return fmt::format("{} {} of {} {}", one ? "rank" : "ranks", listed(lacking), there.size(), one ? "has" : "have");
}

Diagnostic absent(std::uint32_t rank, const std::vector<bool>& there, std::string hint) {
  return {.where = fmt::format("rank {}", rank),
          .message = absent_text(there) + " not come in time",
          .hint = std::move(hint)};
}

Reception::Reception(Hello own, Descriptor listener)
    : own_(std::move(own)), listener_(std::move(listener)), places_(own_.size) {
  for (auto& all : sockets) all.resize(own_.size);
}

bool Reception::all_there() const noexcept {
  for (const auto& all : sockets)
    if (std::any_of(all.begin() + own_.rank + 1, all.end(), [](const Descriptor& s) { return !s; })) return false;
  return true;
}

Result<void, Diagnostic> Reception::until_all(Deadline d) {
  while (!all_there()) {
    if (d.passed()) return not_come();
    std::vector<pollfd> watched{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& g : guests_) watched.push_back({.fd = g.socket.get(), .events = POLLIN, .revents = 0});
    // A rank that waits for rank 0 says nothing more, so what can be read is its end.
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t r = 0; first() && r < own_.size; ++r)
      if (sockets[0][r]) waiting.push_back(r);
    const auto guests = watched.size();
    for (const auto r : waiting) watched.push_back({.fd = sockets[0][r].get(), .events = POLLIN, .revents = 0});
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(d.left()).count() + 1;
    if (::poll(watched.data(), watched.size(), static_cast<int>(std::min<long>(left, 1000))) <= 0) continue;
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (watched[guests + i].revents != 0)
        return Diagnostic{.where = fmt::format("rank {}", waiting[i]),
                          .message = "it has ended before all ranks had come",
                          .hint = "see what that rank reports"};
    for (std::size_t g = 0; g < guests_.size(); ++g)
      if (watched[g + 1].revents != 0) listen_to(guests_[g]);
    std::erase_if(guests_, [](const Guest& g) { return !g.socket; });
    if (watched[0].revents != 0)
      if (const auto good = admit(); !good) return good.error();
  }
  return {};
}

Result<void, Diagnostic> Reception::admit() {
  Descriptor s(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!s && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
    return Diagnostic{.where = fmt::format("rank {}", own_.rank),
                      .message = fmt::format("a connection cannot be taken: {}", std::strerror(errno)),
                      .hint = "raise the limit of descriptors (ulimit -n), or use fewer ranks"};
  if (!s || !may_enter(s.get())) return {};
  if (guests_.size() >= kStrangers + 2 * own_.size) guests_.pop_front();
  guests_.push_back({.socket = std::move(s)});
  return {};
}

void Reception::listen_to(Guest& g) {
  char some[kHelloBytes];
  const auto n = ::recv(g.socket.get(), some, kHelloBytes - g.said.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return void(g.socket = Descriptor());
  g.said.append(some, static_cast<std::size_t>(n));
  if (g.said.size() == kHelloBytes) decide(g);
}

void Reception::decide(Guest& g) {
  auto s = std::exchange(g.socket, Descriptor());
  const auto h = hello_from(g.said);
  if (!h) return;
  if (const auto no = refusal(*h)) {
    refused_ = no->text.substr(0, no->text.find('\n'));
    (void)send_answer(s.get(), *no, Deadline{});
    return;
  }
  if (h->socket == 0) {
    const auto host = host_of_peer(s.get());
    places_[h->rank] = h->place.starts_with(':') && !is_loopback(host) ? "[" + host + "]" + h->place : h->place;
  }
  sockets[h->socket][h->rank] = std::move(s);
  if (!first() || h->socket != 0) return;
  for (std::uint32_t r = 0; r < own_.size; ++r) {
    if (!sockets[0][r]) continue;
    // What a socket does not take at once is not sent: a rank that reads nothing must not keep the others waiting.
    (void)send_answer(sockets[0][r].get(), {Answer::Kind::came, std::to_string(h->rank)}, Deadline{});
    if (r != h->rank) (void)send_answer(sockets[0][h->rank].get(), {Answer::Kind::came, std::to_string(r)}, Deadline{});
  }
}

std::optional<Answer> Reception::refusal(const Hello& h) const {
  constexpr std::string_view kSame = "start all ranks with the same version of the program";
  if (h.protocol != own_.protocol)
    return refuse(fmt::format("it speaks version {} of the protocol (sdma {}), and rank {} version {} (sdma {})",
                              h.protocol, h.version, own_.rank, own_.protocol, own_.version),
                  kSame);
  if (h.token != own_.token)
    return refuse(fmt::format("its token is not that of rank {}", own_.rank),
                  "give all ranks the same SDMA_MEET_TOKEN, and each job a place of its own");
  const auto who = fmt::format("rank {}", h.rank);
  if (h.version != own_.version)
    return refuse(fmt::format("{} is sdma {}, and rank {} is sdma {}", who, h.version, own_.rank, own_.version), kSame);
  if (h.size != own_.size)
    return refuse(fmt::format("{} is one of {} ranks, and rank {} one of {}", who, h.size, own_.rank, own_.size),
                  "start all ranks with one launcher, and give each job a place of its own");
  if (h.rank >= h.size)
    return refuse(fmt::format("{} is not below {}, the number of ranks", who, h.size), "ranks count from 0");
  if (h.socket > 1 || h.rank <= own_.rank || sockets[h.socket][h.rank])
    return refuse(fmt::format("{} of {} is there already", who, h.size),
                  "two processes have this number: start the ranks with one launcher, once");
  return {};
}

void Reception::answer_all(const Answer& a, Deadline d) {
  for (const auto& s : sockets[0])
    if (s) (void)send_answer(s.get(), a, d);
}

Diagnostic Reception::not_come() const {
  std::vector<bool> there(own_.size, true);
  for (std::uint32_t r = own_.rank + 1; r < own_.size; ++r) there[r] = sockets[0][r] && sockets[1][r];
  return absent(own_.rank, there,
                refused_.empty() ? "see what they report, and whether the launcher has started them"
                                 : "a process was refused: " + refused_);
}

}}}  // namespace sdma::v0_3::detail
