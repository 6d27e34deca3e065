// SPDX-License-Identifier: MIT
#pragma once
// A second process for tests that need one.
//
//   TEST_CASE("(process) doubles", "[.]") { send(Child::kLink, 2 * receive<int>(Child::kLink)); }
//
//   Child c("(process) doubles");
//   send(c.link(), 3);
//   CHECK(receive<int>(c.link()) == 6);
//   CHECK(c.status() == 0);
#include "support/catch.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <utility>

/// This program again, in a process of its own, with one (hidden) test. The
/// child reads and writes the other end of `link()` as descriptor kLink.
class Child {
 public:
  static constexpr int kLink = 100;
  explicit Child(const char* test) {
    int ends[2]{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    link_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], kLink);
      ::execl("/proc/self/exe", "child", test, static_cast<char*>(nullptr));
      ::_exit(126);
    }
    ::close(ends[1]);
  }
  ~Child() {
    ::close(link_);
    (void)status();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int link() const { return link_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// How it ended, as waitpid says it.
  int status() {
    if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status_, 0);
    return status_;
  }

 private:
  int link_ = -1;
  pid_t pid_ = -1;
  int status_ = -1;
};

/// For a thread beside the test's own, because Catch2 takes assertions of one thread at a time.
template <class T> bool try_send(int link, const T& value) {
  return ::write(link, &value, sizeof value) == sizeof value;
}
template <class T> bool try_receive(int link, T& value) { return ::read(link, &value, sizeof value) == sizeof value; }

template <class T> void send(int link, const T& value) { REQUIRE(try_send(link, value)); }
template <class T> T receive(int link) {
  T value{};
  REQUIRE(try_receive(link, value));
  return value;
}
