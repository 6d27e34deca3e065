// SPDX-License-Identifier: MIT
// The rule of sleeping threads: a process whose threads all sleep until one of them, or a GPU, wakes another; what may
// still store to its memory then; and threads that cannot run.
#include "../../lib/doctor/process.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

std::uint32_t own_word = 0;  // of the child; the parent never reads it

void sleep_on(std::uint32_t* word, const timespec* end) {
  for (;;) (void)::syscall(SYS_futex, word, FUTEX_WAIT, 0, end, nullptr, 0);
}

/// A child whose second thread sleeps in `second`.
class Sleeper {
 public:
  template <class F> explicit Sleeper(F second) {
    const auto parent = ::getpid();
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    std::thread(second).detach();
    sleep_on(&own_word, nullptr);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  /// Two threads, and neither runs.
  bool sleeps() const {
    std::size_t asleep = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
      const auto call = read_file((task.path() / "syscall").string());
      REQUIRE(call);
      asleep += call->rfind("running", 0) != 0;
    }
    return asleep == 2;
  }
  std::vector<doctor::SleepingThread> threads() const {
    const auto mappings = doctor::mappings_of(pid_);
    const doctor::ProcessMemory memory(pid_, {});
    return doctor::sleeping_threads(pid_, mappings, memory);
  }
  /// What the rule says once both sleep where they stay. A thread passes other waits before it does.
  std::size_t found(std::size_t expected) const {
    std::size_t now = 0;
    for (const auto end = Deadline::in(30s); !end.passed(); std::this_thread::sleep_for(1ms))
      if (sleeps() && (now = threads().size()) == expected) return now;
    return now;
  }

 private:
  pid_t pid_ = -1;
};

/// A child that has no files and no handlers but those of `begin`, which it calls, and then sleeps.
class Bare {
 public:
  explicit Bare(void (*begin)()) {
    auto* const ready = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(static_cast<void*>(ready) != MAP_FAILED);
    const auto parent = ::getpid();
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      for (int s = 1; s <= SIGRTMAX; ++s) ::signal(s, SIG_DFL);
      (void)::syscall(SYS_close_range, 0u, ~0u, 0u);
      begin();
      ready->store(1);
      sleep_on(&own_word, nullptr);
    }
    for (const auto end = Deadline::in(30s); ready->load() == 0 && !end.passed();) std::this_thread::sleep_for(1ms);
    REQUIRE(ready->load() == 1);
    ::munmap(ready, 4096);
  }
  ~Bare() {
    ::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  /// What is said of its threads, once there are `n` of them that are held.
  std::vector<std::string> held(std::size_t n) const {
    std::vector<doctor::HeldThread> all;
    for (const auto end = Deadline::in(30s); !end.passed(); std::this_thread::sleep_for(1ms))
      if (all = doctor::held_threads(pid_); all.size() == n) break;
    return doctor::sentences_of(all, pid_, doctor::count_threads(pid_));
  }

 private:
  pid_t pid_ = -1;
};
void ignore(int) {}

}  // namespace

TEST_CASE("a timer, a handler of a signal and a socket may store a value though all threads sleep") {
  using Parts = std::vector<std::string>;
  CHECK(doctor::sleepless_parts(Bare([] {}).pid()).empty());
  CHECK(doctor::sleepless_parts(Bare([] { ::signal(SIGUSR1, ignore); }).pid()) == Parts{"a handler of the signal 10"});
  CHECK(doctor::sleepless_parts(Bare([] { ::signal(SIGUSR1, ignore), ::signal(SIGALRM, ignore); }).pid()) ==
        Parts{"a handler of the signals 10, 14"});
  // What only an instruction of the thread itself raises, it does not raise while it sleeps.
  CHECK(doctor::sleepless_parts(Bare([] { ::signal(SIGSEGV, ignore); }).pid()).empty());
  CHECK(doctor::sleepless_parts(Bare([] {
                                  int two[2];
                                  (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, two);
                                }).pid()) == Parts{"2 sockets"});
  if (!std::filesystem::exists("/proc/self/timers")) return;  // a kernel without CHECKPOINT_RESTORE
  CHECK(doctor::sleepless_parts(Bare([] {
                                  sigevent e{};
                                  e.sigev_notify = SIGEV_NONE;
                                  timer_t timer;
                                  (void)::timer_create(CLOCK_MONOTONIC, &e, &timer);
                                }).pid()) == Parts{"a timer"});
}

TEST_CASE("a thread that is stopped, a zombie or in the kernel is said to be so") {
  const Bare stopped([] {});
  CHECK(doctor::held_threads(stopped.pid()).empty());
  ::kill(stopped.pid(), SIGSTOP);
  const auto number = std::to_string(stopped.pid());
  CHECK(stopped.held(1) == std::vector<std::string>{
                               "Process " + number +
                               " is stopped (state T): it stores no value and rings no doorbell meanwhile, until kill "
                               "-CONT " +
                               number + "."});
  // A thread that has called vfork waits for its child in state D.
  const Bare waits([] {
    std::thread([] {
      if (::vfork() != 0) return;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }).detach();
  });
  const auto in_kernel = waits.held(1);
  REQUIRE(in_kernel.size() == 1);
  CAPTURE(in_kernel[0]);
  CHECK(in_kernel[0].rfind("Thread ", 0) == 0);
  CHECK(in_kernel[0].find(" of process " + std::to_string(waits.pid()) + " is in the kernel (state D)") !=
        std::string::npos);
  const auto parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread([] { sleep_on(&own_word, nullptr); }).detach();
    ::syscall(SYS_exit, 0);  // of the first thread alone
  }
  std::vector<doctor::HeldThread> zombies;
  for (const auto end = Deadline::in(30s); !end.passed() && zombies.empty(); std::this_thread::sleep_for(1ms))
    zombies = doctor::held_threads(parent);
  REQUIRE(zombies.size() == 1);
  CHECK((zombies[0].state == 'Z' && zombies[0].thread == parent));
  CHECK(doctor::sentences_of(zombies, parent, doctor::count_threads(parent))
            .front()
            .find("is a zombie (state Z): it has "
                  "ended, and others run on.") != std::string::npos);
  ::kill(parent, SIGKILL);
  (void)::waitpid(parent, nullptr, 0);
}

TEST_CASE("all threads of a process sleep until one of them wakes another") {
  const Sleeper both([] { sleep_on(&own_word, nullptr); });
  REQUIRE(both.found(2) == 2);
  const auto program = std::filesystem::read_symlink("/proc/self/exe").filename().string();
  for (const auto& t : both.threads()) {
    CHECK(t.in == "a wait for another thread");
    // In syscall() of libc, which sleep_on of this program has called.
    REQUIRE(t.stack.size() >= 2);
    CAPTURE(t.stack);
    CHECK(t.stack[0].rfind("libc.so.6+0x", 0) == 0);
    CHECK(t.stack[1].rfind(program + "+0x", 0) == 0);
  }
}

TEST_CASE("a thread that the time, another process or a file wakes is no part of a deadlock") {
  static const timespec hours{36000, 0};
  auto* const shared =
      static_cast<std::uint32_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(shared != MAP_FAILED);
  const Sleeper timed([] { sleep_on(&own_word, &hours); });
  const Sleeper with_another([=] { sleep_on(shared, nullptr); });
  const Sleeper paused([] { ::pause(); });
  const Sleeper receives([] {
    int two[2];
    char byte;
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, two) == 0) (void)::recv(two[0], &byte, 1, 0);
  });
  for (const auto* s : {&timed, &with_another, &paused, &receives}) {
    for (const auto end = Deadline::in(30s); !s->sleeps() && !end.passed();) std::this_thread::sleep_for(1ms);
    REQUIRE(s->sleeps());
    CHECK(s->threads().empty());
  }
  ::munmap(shared, 4096);
}
