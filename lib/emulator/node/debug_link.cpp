// SPDX-License-Identifier: MIT
#include "debug_link.hpp"

#include "../../core/abstract_address.hpp"
#include "../../core/descriptor.hpp"
#include "../../engine/signals_blocked.hpp"
#include "../no_memory.hpp"
#include "../real.hpp"
#include "../thread_sanitizer.hpp"
#include "node.hpp"
#include "tree/processes.hpp"
#include "user.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sdma::emulator {
namespace {

using kfd::DebugOp;
using Owned = sdma::detail::Descriptor;

struct Question {
  kfd::DebugTrap args{};
  std::int32_t thread{};  ///< the caller
  bool takes_session{};   ///< the caller has a node now, and asks its debugger for an early session
};
struct Reply {
  kfd::DebugTrap args{};
  std::int32_t error{};
};
/// Of SUSPEND_QUEUES and RESUME_QUEUES: each queue once.
constexpr std::size_t kMostIds = kfd::kMaxQueues;
constexpr std::size_t kMostData = kfd::kMaxQueues * sizeof(kfd::QueueEntry);
constexpr timeval kAnswered{.tv_sec = 10, .tv_usec = 0}, kAsked{.tv_sec = 1, .tv_usec = 0};

void set_patience(const Owned& socket, const timeval& t) noexcept {
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) (void)::setsockopt(socket.get(), SOL_SOCKET, which, &t, sizeof t);
}
/// The process at the other end.
pid_t peer_of(const Owned& socket) noexcept {
  ucred who{};
  socklen_t bytes = sizeof who;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 ? who.pid : -1;
}

sdma::detail::AbstractAddress address(ino_t arena) noexcept {
  char name[64];
  std::snprintf(name, sizeof name, "sdma-kfd-debug-%" PRIxMAX, std::uintmax_t{arena});
  return sdma::detail::AbstractAddress(name);
}

/// Sends `head`, then `data`, and a descriptor unless it is -1.
template <class Head>
bool send_message(int socket, const Head& head, std::span<const std::byte> data, int fd) noexcept {
  iovec parts[]{{const_cast<Head*>(&head), sizeof head}, {const_cast<std::byte*>(data.data()), data.size()}};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)]{};
  msghdr m{};
  m.msg_iov = parts;
  m.msg_iovlen = 2;
  if (fd >= 0) {
    m.msg_control = room;
    m.msg_controllen = sizeof room;
    auto* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &m, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof head + data.size());
}

/// How many bytes of `data` were received after `head`; a negative errno, or -ESRCH if the other end is gone.
template <class Head> ssize_t receive_message(int socket, Head& head, std::span<std::byte> data, int* fd) noexcept {
  iovec parts[]{{&head, sizeof head}, {data.data(), data.size()}};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof *fd)]{};
  msghdr m{};
  m.msg_iov = parts;
  m.msg_iovlen = 2;
  m.msg_control = room;
  m.msg_controllen = sizeof room;
  ssize_t n = -1;
  for (int tries = 0; n < 0 && tries < 100; ++tries) {
    n = ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno != EINTR) return errno == EAGAIN ? -ETIMEDOUT : -ESRCH;
  }
  for (auto* c = n > 0 ? CMSG_FIRSTHDR(&m) : nullptr; c; c = CMSG_NXTHDR(&m, c)) {
    int got = -1;
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(&got, CMSG_DATA(c), sizeof got);
    if (fd && *fd < 0) *fd = got;
    else ::close(got);
  }
  return n < static_cast<ssize_t>(sizeof head) ? -ESRCH : n - static_cast<ssize_t>(sizeof head);
}

/// A number in the status of a process; 0 if there is no such process.
pid_t status_of(pid_t pid, const char* form) noexcept {
  char path[48], line[256];
  std::snprintf(path, sizeof path, "/proc/%d/status", pid);
  auto* const f = SDMA_REAL(fopen)(path, "re");
  pid_t value = 0;
  while (f && std::fgets(line, sizeof line, f) && std::sscanf(line, form, &value) != 1) {}
  if (f) std::fclose(f);
  return value;
}
/// The thread that traces the leader of a process; 0: none.
pid_t tracer_of(pid_t pid) noexcept { return status_of(pid, "TracerPid: %d"); }
/// False if it has ended, although its parent may not have noticed.
bool has_memory(pid_t pid) noexcept { return status_of(pid, "VmSize: %d") > 0; }

/// Whether `thread` of process `pid` traces the leader of this process.
bool traced_by(pid_t pid, pid_t thread) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d", pid, thread);
  return thread > 0 && SDMA_REAL(access)(path, F_OK) == 0 && tracer_of(::getpid()) == thread;
}

/// A connection to the node of a process, or a negative errno.
int connect_to(std::uint32_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%u/fd", pid);
  if (pid == 0 || SDMA_REAL(access)(path, F_OK) != 0) return -ESRCH;
  // Only root may read this of a process that has ended. Such a process has no memory.
  if (SDMA_REAL(access)(path, R_OK) != 0) return has_memory(static_cast<pid_t>(pid)) ? -EPERM : -ESRCH;
  for (const auto inode : arenas_of(pid)) {
    Owned s(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (s.get() < 0) return -errno;
    set_patience(s, kAnswered);
    const auto there = address(inode);
    if (::connect(s.get(), there.get(), there.bytes()) == 0 && peer_of(s) == static_cast<pid_t>(pid))
      return s.release();
  }
  return -ESRCH;
}

/// Asks another process.
int ask(Node& own, kfd::DebugTrap& a, std::vector<std::byte>& data) {
  int at = connect_to(a.pid);
  kfd::DebugTrap again;
  if (at == -ESRCH) {
    const auto pid = static_cast<pid_t>(a.pid);
    const bool traced = tracer_of(pid) == ::gettid() && has_memory(pid);
    const int error = own.debugged.answer(a, traced, data);
    if (error != 0 || a.op != static_cast<std::uint32_t>(DebugOp::enable)) return error;
    // The process may have created its node meanwhile, without finding this session.
    at = connect_to(a.pid);
    const Owned file(at < 0 ? -1 : own.debugged.hand_over(a.pid, again));
    if (file.get() < 0) return (void)Owned(at), 0;
    data.clear();
  }
  if (at < 0) return -at;
  Owned there(at);
  const bool enables = a.op == static_cast<std::uint32_t>(DebugOp::enable);
  const int fd = enables && is_open(static_cast<int>(a.enable.fd)) ? static_cast<int>(a.enable.fd) : -1;
  if (!send_message(there.get(), Question{a, ::gettid()}, data, fd)) return ESRCH;
  data.resize(kMostData);
  Reply r;
  const auto n = receive_message(there.get(), r, data, nullptr);
  data.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  if (n < 0) return static_cast<int>(-n);
  a = r.args;
  if (r.error != 0) return r.error;  // also a number of queues
  if (enables) own.debugged.keep(a.pid, there.release());
  if (a.op == static_cast<std::uint32_t>(DebugOp::disable)) own.debugged.close(a.pid);
  return 0;
}

/// This process asks about itself.
int ask_self(Node& own, kfd::DebugTrap& a, std::vector<std::byte>& data) {
  const std::lock_guard lock(own.mutex);
  const bool enables = a.op == static_cast<std::uint32_t>(DebugOp::enable);
  Owned file(enables ? away(SDMA_REAL(fcntl)(static_cast<int>(a.enable.fd), F_DUPFD_CLOEXEC, 0)) : -1);
  const int error = own.debug.answer(a, file.get(), data);
  if (error == 0) (void)file.release();
  return error;
}

/// Copies entries to the caller's array, whose entries may be shorter or longer.
template <class Entry>
bool entries_to_user(const kfd::DebugSnapshot& a, std::uint32_t stride, std::span<const std::byte> data) {
  const auto each = std::min<std::size_t>(stride, sizeof(Entry));
  for (std::size_t i = 0; i * sizeof(Entry) < data.size(); ++i)
    if (!to_user(a.entries + i * stride, data.data() + i * sizeof(Entry), each)) return false;
  return true;
}

}  // namespace

/// A session with a process that has no node.
struct DebugSessions::Early {
  Exceptions exceptions{};
  Debug debug{exceptions, nullptr, tree().node(), Drive::caller};
};

int debug_trap(Node& own, kfd::DebugTrap& a) {
  const auto op = static_cast<DebugOp>(a.op);
  const auto asked = a;
  const auto call = [&](kfd::DebugTrap& args, std::vector<std::byte>& data) {
    return args.pid == static_cast<std::uint32_t>(::getpid()) ? ask_self(own, args, data) : ask(own, args, data);
  };
  std::vector<std::byte> data;
  const bool suspends = op == DebugOp::suspend_queues, resumes = op == DebugOp::resume_queues;
  if (suspends || resumes) {
    const auto ids = suspends ? a.suspend.ids : a.resume.ids;
    const auto count = suspends ? a.suspend.count : a.resume.count;
    if (count > kMostIds) return ENOMEM;
    data.resize(count * sizeof(std::uint32_t));
    if (!from_user(data.data(), ids, data.size())) return EFAULT;
    const int result = call(a, data);
    return result <= 0 && !to_user(ids, data.data(), data.size()) ? EFAULT : result;
  }
  if (const int error = call(a, data)) return error;
  switch (op) {
    case DebugOp::enable:
      a.enable.info_bytes = sizeof(kfd::RuntimeInfo);
      if (!to_user(a.enable.info, data.data(), std::min<std::size_t>(asked.enable.info_bytes, data.size()))) {
        kfd::DebugTrap undo;
        undo.pid = a.pid;
        undo.op = static_cast<std::uint32_t>(DebugOp::disable);
        (void)call(undo, data);
        return EFAULT;
      }
      return 0;
    case DebugOp::queue_snapshot:
      return entries_to_user<kfd::QueueEntry>(a.snapshot, asked.snapshot.entry_bytes, data) ? 0 : EFAULT;
    case DebugOp::device_snapshot:
      return entries_to_user<kfd::DeviceEntry>(a.snapshot, asked.snapshot.entry_bytes, data) ? 0 : EFAULT;
    default: return 0;
  }
}

void DebugSessions::keep(std::uint32_t pid, int connection) {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = connections_.try_emplace(pid, -1);
  if (at->second >= 0) ::close(at->second);
  at->second = away(connection);
}

void DebugSessions::close(std::uint32_t pid) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = connections_.find(pid);
  if (at == connections_.end()) return;
  ::close(at->second);
  connections_.erase(at);
}

void DebugSessions::abandon() noexcept {
  for (const auto& [pid, fd] : connections_) ::close(fd);
  for (const auto& [pid, early] : early_) early->debug.abandon();
}

DebugSessions::DebugSessions() = default;
DebugSessions::~DebugSessions() { abandon(); }

int DebugSessions::answer(kfd::DebugTrap& a, bool traced, std::vector<std::byte>& data) {
  const std::lock_guard lock(mutex_);
  const bool enables = a.op == static_cast<std::uint32_t>(DebugOp::enable);
  auto at = early_.find(a.pid);
  if (at == early_.end() && !(enables && traced)) return ESRCH;
  if (!traced && a.op != static_cast<std::uint32_t>(DebugOp::disable)) return EPERM;
  if (at == early_.end()) at = early_.try_emplace(a.pid, std::make_unique<Early>()).first;
  auto& debug = at->second->debug;
  Owned file(enables ? away(SDMA_REAL(fcntl)(static_cast<int>(a.enable.fd), F_DUPFD_CLOEXEC, 0)) : -1);
  const int error = debug.answer(a, file.get(), data);
  if (error == 0) (void)file.release();
  if (!debug.session()) early_.erase(at);
  return error;
}

int DebugSessions::hand_over(std::uint32_t pid, kfd::DebugTrap& enable) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = early_.find(pid);
  if (at == early_.end()) return -1;
  enable.pid = pid;
  const int file = at->second->debug.hand_over(enable);
  early_.erase(at);
  return file;
}

/// Continues the session that the process which traces this one has begun early: its connection, or -1.
int DebugPort::take_session(Node& n) noexcept {
  const auto tracer = tracer_of(::getpid());
  if (tracer <= 0) return -1;
  return guarded(-1, [&] {
    Owned there(connect_to(static_cast<std::uint32_t>(status_of(tracer, "Tgid: %d"))));
    Reply r;
    int received = -1;
    std::vector<std::byte> data;
    if (there.get() < 0 || !send_message(there.get(), Question{{}, ::gettid(), true}, {}, -1) ||
        receive_message(there.get(), r, data, &received) < 0 || r.error != 0)
      return -1;
    Owned file(away(received));
    const std::lock_guard lock(n.mutex);
    if (n.debug.answer(r.args, file.get(), data) != 0) return -1;
    (void)file.release();
    return away(there.release());
  });
}

void DebugPort::open(Node& n) noexcept {
  listener_ = away(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  bell_ = away(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const auto here = address(n.arena.inode());
  struct stat s {};
  pthread_t thread{};
  const sdma::detail::SignalsBlocked blocked;
  if (bell_ < 0 || ::bind(listener_, here.get(), here.bytes()) != 0 || ::listen(listener_, 8) != 0 ||
      SDMA_REAL(fstat)(listener_, &s) != 0)
    return abandon();
  inode_ = s.st_ino;
  session_ = take_session(n);
  if (::pthread_create(&thread, nullptr, run, &n) != 0) return abandon();
  (void)::pthread_setname_np(thread, "sdma debug");
  (void)::pthread_detach(thread);
  n.exceptions.ring(bell_);
}

void DebugPort::abandon() noexcept {
  for (int* fd : {&listener_, &bell_, &session_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

void* DebugPort::run(void* node) noexcept {
  auto& n = *static_cast<Node*>(node);
  exempt_this_thread();
  n.debug_port.serve(n);
  return nullptr;
}

void DebugPort::serve(Node& n) noexcept {
  enum { kListener, kBell, kSession };
  for (;;) {
    pollfd p[]{{.fd = listener_, .events = POLLIN, .revents = 0},
               {.fd = bell_, .events = POLLIN, .revents = 0},
               {.fd = session_, .events = POLLRDHUP, .revents = 0}};
    if (::poll(p, std::size(p), -1) < 0) return;
    struct stat s {};
    // A program may close all descriptors, and its own files may have their numbers then.
    if (SDMA_REAL(fstat)(listener_, &s) != 0 || s.st_ino != inode_) return;
    eventfd_t rung = 0;
    if ((p[kBell].revents & POLLIN) != 0 && ::eventfd_read(bell_, &rung) == 0) {
      const std::lock_guard lock(n.mutex);
      n.debug.notify();
    }
    if (p[kSession].revents != 0) {
      const std::lock_guard lock(n.mutex);
      n.debug.end();
    }
    if ((p[kListener].revents & POLLIN) != 0) answer_one(n, ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    const std::lock_guard lock(n.mutex);
    if (session_ >= 0 && !n.debug.session()) ::close(std::exchange(session_, -1));
  }
}

void DebugPort::answer_one(Node& n, int connection) noexcept {
  Owned there(connection);
  if (connection < 0) return;
  set_patience(there, kAsked);
  Question q;
  int received = -1;
  std::array<std::byte, kMostIds * sizeof(std::uint32_t)> ids;
  const auto bytes = receive_message(there.get(), q, ids, &received);
  if (bytes < 0) return;
  Owned file(away(received));
  Reply r{.args = q.args};
  const auto op = static_cast<DebugOp>(q.args.op);
  std::vector<std::byte> data;
  if (q.takes_session) {
    const auto pid = static_cast<std::uint32_t>(peer_of(there));
    const Owned its(n.debugged.hand_over(pid, r.args));
    r.error = its.get() < 0 ? ESRCH : 0;
    if (send_message(there.get(), r, {}, its.get()) && r.error == 0)
      (void)errno_of([&] { return n.debugged.keep(pid, there.release()), 0; });
    return;
  }
  {
    const std::lock_guard lock(n.mutex);
    r.error = op != DebugOp::disable && !traced_by(peer_of(there), q.thread) ? EPERM : errno_of([&] {
      data.assign(ids.begin(), ids.begin() + bytes);
      return n.debug.answer(r.args, file.get(), data);
    });
    if (r.error == 0 && op == DebugOp::enable) {
      (void)file.release();
      if (session_ >= 0) ::close(session_);
      session_ = -1;
    }
  }
  const bool sent = send_message(there.get(), r, data, -1);
  if (r.error != 0 || op != DebugOp::enable) return;
  session_ = away(there.release());
  if (sent) return;
  const std::lock_guard lock(n.mutex);
  n.debug.end();
}

}  // namespace sdma::emulator
