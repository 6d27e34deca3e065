// SPDX-License-Identifier: MIT
// The rule of sleeping threads: a process whose threads all sleep until one of them, or a GPU, wakes another.
#include "../../lib/doctor/process.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace

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
  for (const auto* s : {&timed, &with_another, &paused}) {
    for (const auto end = Deadline::in(30s); !s->sleeps() && !end.passed();) std::this_thread::sleep_for(1ms);
    REQUIRE(s->sleeps());
    CHECK(s->threads().empty());
  }
  ::munmap(shared, 4096);
}
