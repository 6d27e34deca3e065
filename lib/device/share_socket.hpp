// SPDX-License-Identifier: MIT
#pragma once
// What both ends of a share socket use: its address, and an answer with a
// descriptor. share_server.hpp has the protocol. Pure functions of a socket; any thread. Internal.
//
//   const auto at = address(handle.socket);  connect(fd, at.get(), at.bytes());
//   send(client, object, fd);                  // fd: -1 for none
//   int error = receive(server, object, fd);   // 0, or an errno; EMSGSIZE: the descriptor was lost at this end
#include "../core/abstract_address.hpp"
#include "../core/own_user.hpp"
#include "share_server.hpp"

#include <fmt/format.h>

#include <sys/socket.h>
#include <cerrno>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail::share {

inline AbstractAddress address(const std::array<std::uint64_t, 2>& name) {
  return AbstractAddress(fmt::format("sdma-share-{:016x}{:016x}", name[0], name[1]));
}

/// A message with room for one descriptor.
struct Message {
  explicit Message(SharedObject& o) noexcept : part{.iov_base = &o, .iov_len = sizeof o} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  iovec part;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
};

inline bool send(int client, SharedObject o, int fd) noexcept {
  Message m(o);
  if (fd < 0) {
    m.header.msg_control = nullptr;
    m.header.msg_controllen = 0;
  } else {
    auto* c = CMSG_FIRSTHDR(&m.header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(client, &m.header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof o);
}

inline int receive(int server, SharedObject& o, Descriptor& fd) noexcept {
  Message m(o);
  const auto n = recvmsg(server, &m.header, MSG_CMSG_CLOEXEC);
  if (n < 0) return errno;
  const auto* c = CMSG_FIRSTHDR(&m.header);
  if (c && c->cmsg_type == SCM_RIGHTS) {
    int got = -1;
    std::memcpy(&got, CMSG_DATA(c), sizeof got);
    fd = Descriptor(got);
  }
  if ((m.header.msg_flags & MSG_CTRUNC) != 0) return EMFILE;
  return n == static_cast<ssize_t>(sizeof o) ? 0 : EPIPE;
}

}}}  // namespace sdma::v0_3::detail::share
