// SPDX-License-Identifier: MIT
// meets [HOST:PORT]: meets the other ranks of its launcher, passes them bytes, and prints one line. The exit code is 0
// if it has met them, 1 if not, and 2 without a launcher.
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/launcher.hpp"
#include "sdma/schedule/meet.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace sdma;

namespace {

int fail(const Diagnostic& d) {
  std::fputs((to_string(d) + "\n").c_str(), stderr);
  return 1;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

int main(int argc, char** argv) {
  const auto at = launched();
  if (!at) return fail(at.error());
  if (!*at) return std::puts("alone"), 2;
  const auto rank = (*at)->rank, size = (*at)->size;
  const auto d = Deadline::in(std::chrono::seconds(60));
  const auto meeting = meet(**at, d, {.address = argc > 1 ? argv[1] : ""});
  if (!meeting) return fail(meeting.error());
  SocketExchange exchange(meeting->exchange());
  SocketTransport transport(meeting->transport());
  if (const auto given = exchange.publish(bytes_of(fmt::format("{}", rank)), d); !given) return fail(given.error());
  auto line = fmt::format("rank {} of {}, {}:", rank, size, (*at)->launcher);
  for (std::uint32_t r = 0; r < size; ++r) {
    if (r == rank) continue;
    const auto bytes = exchange.receive(r, d);
    if (!bytes) return fail(bytes.error());
    line += " " + text_of(*bytes);
    transport.send(r, *bytes);  // back to where it came from
  }
  std::uint32_t own = 0;
  for (std::uint32_t came = 0; came + 1 < size && !d.passed();) {
    const auto m = transport.receive();
    if (!m) {
      transport.wait(d);
      continue;
    }
    ++came;
    own += text_of(m->bytes) == fmt::format("{}", rank);
  }
  std::puts(fmt::format("{}, and {} back", line, own).c_str());
  return own + 1 == size ? 0 : 1;
}
