// SPDX-License-Identifier: MIT
// Messages between ranks of different nodes, through stream sockets.
#include "sdma/schedule/exchange.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::size_t kLength = sizeof(std::uint64_t), kAtOnce = std::size_t{256} << 10;

/// The bytes of the message at the beginning, with its length; 0: the length has not come yet.
std::uint64_t whole_bytes(std::span<const std::byte> in) noexcept {
  std::uint64_t n = 0;
  if (in.size() < kLength) return 0;
  std::memcpy(&n, in.data(), kLength);
  return kLength + n;
}

}  // namespace

Transport::~Transport() = default;

void SocketTransport::send(std::uint32_t rank, std::vector<std::byte> message) {
  auto& p = peers_[rank];
  if (p.closed) return;
  const std::uint64_t n = message.size();
  p.out.push_back({.length = n, .bytes = std::move(message)});
  move_on(rank);
}

void SocketTransport::move_on(std::size_t rank) {
  auto& p = peers_[rank];
  while (!p.out.empty()) {
    auto& first = p.out.front();
    const auto begun = std::min(p.sent, kLength), sent = p.sent - begun;
    iovec parts[] = {{reinterpret_cast<std::byte*>(&first.length) + begun, kLength - begun},
                     {first.bytes.data() + sent, first.bytes.size() - sent}};
    msghdr m{};
    m.msg_iov = parts;
    m.msg_iovlen = std::size(parts);
    const auto n = ::sendmsg(sockets_[rank], &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return p.sent = 0, p.out.clear();  // the end of the rank shows when its last bytes are read
    p.sent += static_cast<std::size_t>(n);
    if (p.sent < first.whole()) continue;
    p.out.pop_front();
    p.sent = 0;
  }
}

std::optional<Transport::Message> SocketTransport::receive() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto rank = (next_ + i) % peers_.size();
    if (sockets_[rank] < 0) continue;
    auto& p = peers_[rank];
    move_on(rank);
    for (;;) {
      const auto rest = std::span(p.in).subspan(p.taken);
      const auto bytes = whole_bytes(rest);
      if (bytes != 0 && rest.size() >= bytes) {
        Message m{.from = static_cast<std::uint32_t>(rank)};
        m.bytes.assign(rest.begin() + kLength, rest.begin() + static_cast<std::ptrdiff_t>(bytes));
        p.taken += static_cast<std::size_t>(bytes);
        next_ = rank + 1;
        return m;
      }
      if (p.closed) break;
      p.in.erase(p.in.begin(), p.in.begin() + static_cast<std::ptrdiff_t>(std::exchange(p.taken, 0)));
      some_.resize(kAtOnce);
      const auto n = ::recv(sockets_[rank], some_.data(), some_.size(), MSG_DONTWAIT);
      if (n > 0) p.in.insert(p.in.end(), some_.begin(), some_.begin() + n);
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      if (n == 0 || errno != EAGAIN) p.closed = true, p.sent = 0, p.out.clear();
      break;
    }
  }
  return {};
}

std::uint64_t SocketTransport::unsent() const noexcept {
  std::uint64_t all = 0;
  for (const auto& p : peers_) {
    for (const auto& m : p.out) all += m.whole();
    all -= p.sent;
  }
  return all;
}

bool SocketTransport::ended(std::uint32_t rank) const noexcept { return peers_[rank].closed; }

void SocketTransport::wait(Deadline d) const {
  std::vector<pollfd> open;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (const auto& p = peers_[r]; sockets_[r] >= 0 && !p.closed)
      open.push_back(
          {.fd = sockets_[r], .events = static_cast<short>(p.out.empty() ? POLLIN : POLLIN | POLLOUT), .revents = 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(d.left()).count() + 1;
  (void)::poll(open.data(), open.size(), static_cast<int>(std::min<long>(left, 1000)));
}

}}  // namespace sdma::v0_3
