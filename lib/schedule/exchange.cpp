// SPDX-License-Identifier: MIT
#include "sdma/schedule/exchange.hpp"

#include "sdma/core/file.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sdma::inline v0 {
namespace {

Diagnostic no_handles(std::uint32_t rank, std::string why) {
  return {.where = fmt::format("rank {}", rank),
          .message = "its handles have not come: " + std::move(why),
          .hint = "start all ranks with the same schedule and the same number of ranks, and see what that one reports"};
}

}  // namespace

Exchange::~Exchange() = default;

Result<void, Diagnostic> FolderExchange::publish(std::span<const std::byte> mine, Deadline) {
  return save_file(path(rank_), std::string_view(reinterpret_cast<const char*>(mine.data()), mine.size()));
}

Result<std::vector<std::byte>, Diagnostic> FolderExchange::receive(std::uint32_t rank, Deadline d) {
  // The file appears whole, or not at all.
  for (Backoff backoff; access(path(rank).c_str(), F_OK) != 0;)
    if (!backoff.step(d)) return no_handles(rank, path(rank) + " does not appear in time");
  const auto text = read_file(path(rank));
  if (!text) return text.error();
  const auto* const at = reinterpret_cast<const std::byte*>(text->data());
  return std::vector<std::byte>(at, at + text->size());
}

std::ptrdiff_t SocketExchange::Peer::bytes() const noexcept {
  std::uint64_t n = 0;
  std::memcpy(&n, received.data(), sizeof n);
  return static_cast<std::ptrdiff_t>(sizeof n + n);
}
bool SocketExchange::Peer::whole() const noexcept {
  return received.size() >= sizeof(std::uint64_t) && received.size() >= static_cast<std::size_t>(bytes());
}

Result<void, Diagnostic> SocketExchange::publish(std::span<const std::byte> mine, Deadline) {
  const std::uint64_t bytes = mine.size();
  for (auto& p : peers_) {
    p.sent = 0;
    if (p.whole()) p.received.erase(p.received.begin(), p.received.begin() + p.bytes());  // of the last time
  }
  mine_.resize(sizeof bytes + mine.size());
  std::memcpy(mine_.data(), &bytes, sizeof bytes);
  std::copy(mine.begin(), mine.end(), mine_.begin() + sizeof bytes);
  return {};
}

/// Sends and receives at once, because each rank's socket holds less than the handles of a large schedule.
Result<std::vector<std::byte>, Diagnostic> SocketExchange::receive(std::uint32_t rank, Deadline d) {
  for (;;) {
    std::vector<pollfd> all;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      auto& p = peers_[r];
      while (sockets_[r] >= 0 && !p.closed && p.sent < mine_.size()) {
        const auto n = ::send(sockets_[r], mine_.data() + p.sent, mine_.size() - p.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) p.sent += static_cast<std::size_t>(n);
        else if (errno == EAGAIN) break;
        else if (errno != EINTR) p.closed = true;
      }
      while (sockets_[r] >= 0 && !p.whole()) {
        std::byte some[4096];
        const auto n = ::recv(sockets_[r], some, sizeof some, MSG_DONTWAIT);
        if (n > 0) p.received.insert(p.received.end(), some, some + n);
        else if (n < 0 && errno == EAGAIN) break;
        else if (n == 0 || errno != EINTR) {
          p.closed = true;
          break;
        }
      }
      const bool sends = !p.closed && p.sent < mine_.size(), receives = !p.closed && !p.whole();
      if (sockets_[r] >= 0 && (sends || receives))
        all.push_back({.fd = sockets_[r],
                       .events = static_cast<short>((sends ? POLLOUT : 0) | (receives ? POLLIN : 0)),
                       .revents = 0});
    }
    auto& from = peers_[rank];
    const bool sending = std::any_of(all.begin(), all.end(), [](const pollfd& p) { return (p.events & POLLOUT) != 0; });
    if (from.whole() && !sending)
      return std::vector<std::byte>(from.received.begin() + sizeof(std::uint64_t),
                                    from.received.begin() + from.bytes());
    if (from.closed && !from.whole()) return no_handles(rank, "it has ended");
    if (d.passed()) return no_handles(rank, "the time is over");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(d.left()).count() + 1;
    (void)poll(all.data(), all.size(), static_cast<int>(std::min<long>(left, 1000)));
  }
}

}  // namespace sdma::inline v0
