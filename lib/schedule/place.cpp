// SPDX-License-Identifier: MIT
#include "place.hpp"

#include "../core/abstract_address.hpp"
#include "../core/own_user.hpp"
#include "../core/words.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// How long one address of a host may be silent: it may have another one.
constexpr std::chrono::seconds kSilence{5};

/// An address of a socket.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

std::string reason(int error) { return std::strerror(error); }

std::pair<std::string, std::string> host_and_port(std::string_view place) {
  const auto colon = std::min(place.rfind(':'), place.size());
  auto host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {std::string(host), std::string(place.substr(std::min(colon + 1, place.size())))};
}

struct FreeAddresses {
  void operator()(addrinfo* a) const noexcept { ::freeaddrinfo(a); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// `host` null: all addresses of this host.
Result<Addresses, std::string> addresses(const char* host, const char* port) {
  addrinfo want{}, *found = nullptr;
  want.ai_socktype = SOCK_STREAM;
  want.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  if (const int error = ::getaddrinfo(host, port, &want, &found); error != 0)
    return std::string(error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error));
  return Addresses(found);
}

int listening(int fd, const sockaddr* at, socklen_t bytes) noexcept {
  return ::bind(fd, at, bytes) == 0 && ::listen(fd, SOMAXCONN) == 0 ? 0 : errno;
}

Result<Descriptor, std::string> listen_to_own_user(std::string_view name) {
  Descriptor s(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const AbstractAddress at(name);
  // With the family alone, the kernel gives it a name.
  const auto bytes = name.empty() ? static_cast<socklen_t>(sizeof(sa_family_t)) : at.bytes();
  if (!s) return reason(errno);
  if (const int error = listening(s.get(), at.get(), bytes); error != 0) return reason(error);
  return s;
}

/// Packets leave at once, and the end of a host that says nothing more is noticed.
void set_up(int tcp) noexcept {
  const int yes = 1;
  ::setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

/// A socket that connects to a free port of its own host may meet itself.
bool met_itself(int fd) noexcept {
  SocketName own, peer;
  return ::getsockname(fd, own.get(), &own.bytes) == 0 && ::getpeername(fd, peer.get(), &peer.bytes) == 0 &&
         own.bytes == peer.bytes && std::memcmp(&own.storage, &peer.storage, own.bytes) == 0;
}

Result<Descriptor, std::string> connected(int family, const sockaddr* at, socklen_t bytes, Deadline d) {
  Descriptor s(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) return reason(errno);
  int error = ::connect(s.get(), at, bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!ready(s.get(), POLLOUT, d)) return reason(ETIMEDOUT);
    if (::getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error == 0 && family != AF_UNIX && met_itself(s.get())) error = ECONNREFUSED;
  if (error == 0 && ::fcntl(s.get(), F_SETFL, 0) != 0) error = errno;
  if (error != 0) return reason(error);
  if (family != AF_UNIX) set_up(s.get());
  return s;
}

}  // namespace

bool is_place(std::string_view place) noexcept {
  if (place.starts_with('@')) return true;
  const auto colon = place.rfind(':');
  if (colon == place.npos || colon == 0) return false;
  const auto port = whole_number<std::uint16_t>(place.substr(colon + 1));
  return port && *port != 0;
}

bool is_loopback(std::string_view host) noexcept {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<Descriptor, std::string> listen_at(const std::string& place) {
  if (place.starts_with('@')) return listen_to_own_user(place.substr(1));
  const auto [host, port] = host_and_port(place);
  const auto all = addresses(is_loopback(host) ? host.c_str() : nullptr, port.c_str());
  if (!all) return all.error();
  // A socket of IPv6 also takes connections of IPv4, where it is for all addresses.
  auto why = reason(EADDRNOTAVAIL);
  for (const int family : {is_loopback(host) ? (*all)->ai_family : AF_INET6, AF_INET})
    for (const auto* a = all->get(); a; a = a->ai_next) {
      if (a->ai_family != family) continue;
      Descriptor s(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int yes = 1, no = 0;
      if (s) ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (s && family == AF_INET6) ::setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
      const int error = s ? listening(s.get(), a->ai_addr, a->ai_addrlen) : errno;
      if (error == 0) return s;
      why = reason(error);
      if (error == EADDRINUSE) return why;
    }
  return why;
}

Result<Descriptor, std::string> connect_to(const std::string& place, Deadline d) {
  if (place.starts_with('@')) {
    const AbstractAddress at(place.substr(1));
    auto s = connected(AF_UNIX, at.get(), at.bytes(), d);
    if (s && !may_enter(s->get())) return std::string("another user's process listens there");
    return s;
  }
  const auto [host, port] = host_and_port(place);
  const auto all = addresses(host.c_str(), port.c_str());
  if (!all) return all.error();
  auto why = reason(EADDRNOTAVAIL);
  for (const auto* a = all->get(); a; a = a->ai_next) {
    auto s = connected(a->ai_family, a->ai_addr, a->ai_addrlen, d.within(kSilence));
    if (s) return s;
    why = s.error();
  }
  return why;
}

std::string place_of(int listener) {
  SocketName own;
  if (::getsockname(listener, own.get(), &own.bytes) != 0) return "";
  if (own.storage.ss_family == AF_UNIX) {
    constexpr auto kBefore = offsetof(sockaddr_un, sun_path) + 1;
    return "@" + std::string(reinterpret_cast<const char*>(&own.storage) + kBefore, own.bytes - kBefore);
  }
  char port[NI_MAXSERV]{};
  ::getnameinfo(own.get(), own.bytes, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  return std::string(":") + port;
}

std::string host_of_peer(int socket) {
  SocketName peer;
  char host[NI_MAXHOST]{};
  if (::getpeername(socket, peer.get(), &peer.bytes) != 0 || peer.storage.ss_family == AF_UNIX ||
      ::getnameinfo(peer.get(), peer.bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  const std::string_view text = host, mapped = "::ffff:";  // of IPv4, as a socket of IPv6 sees it
  return std::string(text.starts_with(mapped) ? text.substr(mapped.size()) : text);
}

bool may_enter(int socket) noexcept {
  SocketName own;
  if (::getsockname(socket, own.get(), &own.bytes) != 0) return false;
  if (own.storage.ss_family == AF_UNIX) return of_own_user(socket);
  set_up(socket);
  return true;
}

bool ready(int socket, short events, Deadline d) noexcept {
  for (;;) {
    pollfd p{.fd = socket, .events = events, .revents = 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(d.left()).count() + 1;
    if (::poll(&p, 1, static_cast<int>(std::min<long>(left, 1000))) > 0) return true;
    if (d.passed()) return false;
  }
}

}}}  // namespace sdma::v0_3::detail
