// SPDX-License-Identifier: MIT
#pragma once
// Whose process is at the other end of a connected Unix socket? Internal.
//
//   if (!of_own_user(socket)) close(socket);
//
// Pure function of a socket; any thread. No errors: an end that the kernel does not name is not of this user.
#include <sys/socket.h>
#include <unistd.h>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Does the other end belong to this process's user? `pid`: its process, as this one numbers it.
inline bool of_own_user(int socket, pid_t* pid = nullptr) noexcept {
  ucred other{};
  socklen_t bytes = sizeof other;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) return false;
  if (pid) *pid = other.pid;
  return other.uid == geteuid();
}

}}}  // namespace sdma::v0_3::detail
