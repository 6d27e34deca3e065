// SPDX-License-Identifier: MIT
// The end of a share socket in the process that opens a handle: it asks the owner for the memory.
#include "sdma/core/deadline.hpp"
#include "sdma/sync/wait.hpp"
#include "share_socket.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/syscall.h>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Waits until the socket can be read, the owner has ended, or the deadline.
bool wait_readable(int socket, int pidfd, Deadline d) noexcept {
  for (;;) {
    pollfd all[] = {{.fd = socket, .events = POLLIN, .revents = 0}, {.fd = pidfd, .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(d.within(std::chrono::hours(1)).left());
    const auto n = poll(all, 2, static_cast<int>(left.count()));
    if ((n < 0 && errno == EINTR) || (n == 0 && !d.passed())) continue;
    return n > 0 && (all[0].revents & POLLIN) != 0;
  }
}

}  // namespace

bool OwnerProcess::ended() const noexcept {
  pollfd p{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return poll(&p, 1, 0) > 0;
}

Result<FetchedObject, Diagnostic> fetch(const SharedHandle& h, std::string_view device,
                                        std::shared_ptr<OwnerProcess> known, Deadline end) {
  const auto where = fmt::format("open_shared process={} object={:016x}", h.process, h.object);
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{.where = where, .message = std::move(message), .hint = std::move(hint)};
  };
  if (h.version != SharedHandle::kVersion)
    return refused(fmt::format("the handle has version {}, and this library reads {}", h.version, h.kVersion),
                   "use one version of the library in all processes, and pass all bytes of the handle");
  const std::string_view kind(h.device.data(), strnlen(h.device.data(), h.device.size()));
  if (kind != device)
    return refused(fmt::format("the handle is of a device of the kind '{}', and this one is '{}'", kind, device),
                   "open the same kind of device in all processes");
  const auto gone = [&] {
    return refused(
        fmt::format("process {} does not share this memory any more: it has ended or closed its device", h.process),
        "a handle is good while its owner's device is open, on the same machine");
  };
  const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return descriptor_error(where, "socket", errno);
  const auto at = share::address(h.socket);
  const auto silent = [&] {
    return refused(fmt::format("process {} did not answer within {} s", h.process, share::kAnswer.count()),
                   "it may be stopped, or overloaded");
  };
  for (Backoff backoff; connect(socket.get(), at.get(), at.bytes()) != 0;) {
    if (errno != EAGAIN && errno != EINTR)
      return errno == ECONNREFUSED ? gone() : descriptor_error(where, "connect", errno);
    if (!backoff.step(end)) return silent();
  }
  pid_t pid = 0;
  if (!of_own_user(socket.get(), &pid))
    return refused("the process that serves this handle belongs to another user", "run all processes as one user");
  if (!known || known->pid() != pid || known->ended()) {
    Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd && (errno == ESRCH || errno == EINVAL)) return gone();
    if (!pidfd) return descriptor_error(where, "pidfd_open", errno);
    known = std::make_shared<OwnerProcess>(pid, std::move(pidfd));
  }
  FetchedObject out{.owner = std::move(known)};
  if (::send(socket.get(), &h.object, sizeof h.object, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof h.object))
    return gone();
  if (!wait_readable(socket.get(), out.owner->pidfd(), end)) return out.owner->ended() ? gone() : silent();
  if (const int error = share::receive(socket.get(), out.object, out.fd); error != 0)
    return error == EMFILE ? descriptor_error(where, "recvmsg", error) : gone();
  if (out.object.withdrawn != 0)
    return refused(fmt::format("process {} has given this memory back", h.process),
                   "keep memory while others may open it");
  if (out.object.bytes != h.bytes)
    return refused(fmt::format("the handle says {} bytes, its owner {}", h.bytes, out.object.bytes),
                   "pass all bytes of the handle");
  return out;
}

}}}  // namespace sdma::v0_3::detail
