// SPDX-License-Identifier: MIT
#pragma once
// Another process of a test, and a socket to it.
//
//   Process other([](Socket s) { s.send(handle_of_something()); return s.receive<char>() ? 0 : 1; });
//   auto handle = *other.socket().receive<SharedHandle>();
//   other.socket().send('x');  CHECK(other.ended() == 0);      // its exit code; 128 + the signal that killed it
//
// What its code throws, such as a failed REQUIRE, ends the process with code 127 (support/end_child.hpp).
//
// Start processes before the test opens a device. A Process that the test drops is killed: its socket closes with it,
// so that no test waits for ever.
#include "sdma/core/deadline.hpp"
#include "support/catch.hpp"
#include "support/end_child.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

namespace sdma::test {

inline Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

/// The descriptors of this process.
inline std::vector<int> descriptors() {
  std::vector<int> out;
  auto* const all = opendir("/proc/self/fd");
  while (const auto* e = readdir(all))
    if (const int fd = std::atoi(e->d_name); e->d_name[0] != '.' && fd != dirfd(all)) out.push_back(fd);
  closedir(all);
  return out;
}
/// Are no more than `n` in use? The owner's thread answers first, and closes the connection then: it may take a moment.
inline bool at_most(std::size_t n) {
  for (const auto end = soon(); descriptors().size() > n;) {
    if (end.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// One end of a socket pair; values of plain types go through it.
class Socket {
 public:
  explicit Socket(int fd) noexcept : fd_(fd) {
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  template <class T> void send(const T& v) const {
    if (::send(fd_, &v, sizeof v, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof v)) std::terminate();
  }
  /// Nothing: the other end has closed.
  template <class T> std::optional<T> receive() const {
    T v{};
    if (::recv(fd_, &v, sizeof v, MSG_WAITALL) != static_cast<ssize_t>(sizeof v)) return {};
    return v;
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

class Process {
 public:
  template <class F> explicit Process(F body) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      close(ends[0]);
      end_child([&] { return body(Socket(ends[1])); });
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  Process(Process&& o) noexcept : pid_(std::exchange(o.pid_, 0)), fd_(std::exchange(o.fd_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ > 0) (void)killed();
    if (fd_ >= 0) close(fd_);
  }
  Socket socket() const { return Socket(fd_); }
  pid_t pid() const noexcept { return pid_; }
  /// Waits until it has ended.
  int ended() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int killed() {
    kill(pid_, SIGKILL);
    return ended();
  }

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
};

}  // namespace sdma::test
