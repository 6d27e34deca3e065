// SPDX-License-Identifier: MIT
// A worker lets others lock, sleeps, wakes and stops. If one of these hangs, its test fails at a deadline.
#include "../../lib/engine/worker.hpp"

#include "support/catch.hpp"

#include <pthread.h>
#include <signal.h>

#include <vector>

using namespace sdma;
using namespace std::chrono_literals;
using detail::Worker;
using Nanoseconds = std::chrono::nanoseconds;

namespace {

constexpr Worker::Pace kPace{.spin = 200us, .first_nap = 50us, .longest_nap = 300us, .pauses = 1};

/// Works off `todo`; naps `most` times, and then sleeps until a wake-up.
struct Counter final : Worker::Served {
  explicit Counter(std::size_t most_naps = 0) : most(most_naps) {}

  Progress round() noexcept override {
    ticket = parking.ticket();
    if (sigset_t now; rounds++ == 0 && pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0)
      signals_blocked = sigismember(&now, SIGINT) == 1 && sigismember(&now, SIGUSR1) == 1;
    if (todo == 0) return Progress::waiting;
    ++done;
    if (todo != kEndless) --todo;
    return Progress::progressed;
  }
  bool spin(bool fresh) noexcept override {
    spins += fresh;
    return fresh && spinning;
  }
  Worker::Rest rest(Progress p, Nanoseconds nap) noexcept override {
    last = p;
    if (naps.size() < most) {
      naps.push_back(nap);
      return Worker::Rest::slept;
    }
    ++sleeps;
    parking.sleep(ticket, Deadline::in(1h));
    return after_sleep;
  }
  void wake() noexcept override { parking.wake(); }

  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};
  // Guarded by the worker's lock.
  std::uint64_t todo = 0, done = 0, rounds = 0;
  bool signals_blocked = false;
  // Used only by the worker until it has stopped, except `sleeps`.
  std::uint32_t ticket = 0;
  std::atomic<std::uint64_t> sleeps{0};
  std::uint64_t spins = 0;
  Progress last{};
  std::vector<Nanoseconds> naps{};
  // Set before the start.
  const std::size_t most;
  bool spinning = false;
  Worker::Rest after_sleep = Worker::Rest::again;
  detail::Parking parking;
};

template <class F> bool soon(F f) {
  for (const auto end = Deadline::in(20s); !end.passed(); std::this_thread::sleep_for(100us))
    if (f()) return true;
  return false;
}

}  // namespace

TEST_CASE("another thread gets the lock between two rounds of a worker that never rests") {
  Counter c;
  c.todo = Counter::kEndless;
  Worker w(c, kPace);
  {
    const std::lock_guard lock(w);
    CHECK_FALSE(w.started());
    w.start("worker");
    CHECK(w.started());
    CHECK(c.rounds == 0);
  }
  const auto ask = [&] {
    for (int i = 0; i < 500; ++i) {
      const std::lock_guard lock(w);
      const auto now = c.rounds;
      std::this_thread::yield();
      if (c.rounds != now) return false;
    }
    return true;
  };
  bool there = false;
  std::thread other([&] { there = ask(); });
  CHECK(ask());
  other.join();
  CHECK(there);
  const auto rounds = [&] {
    const std::lock_guard lock(w);
    return c.rounds;
  };
  // It goes on once no other thread asks.
  CHECK(soon([&, before = rounds()] { return rounds() > before; }));
  CHECK(w.stop());
  CHECK_FALSE(w.stop());
  CHECK(c.signals_blocked);
}

TEST_CASE("each nap is twice as long as the one before, up to the longest") {
  Counter c(6);
  Worker w(c, kPace);
  w.start("worker");
  CHECK(soon([&] { return c.sleeps == 1; }));
  CHECK(w.stop());
  CHECK(c.naps == std::vector<Nanoseconds>{50us, 100us, 200us, 300us, 300us, 300us});
  CHECK(c.last == Progress::waiting);
}

TEST_CASE("no wake-up is lost") {
  Counter c;
  Worker w(c, kPace);
  w.start("worker");
  for (std::uint64_t i = 1; i <= 5000; ++i) {
    {
      const std::lock_guard lock(w);
      ++c.todo;
    }
    w.lock();  // also while it lets others go first
    w.unlock();
    c.wake();
    if (i % 100 == 0)
      REQUIRE(soon([&] {
        const std::lock_guard lock(w);
        return c.done == i;
      }));
  }
  CHECK(w.stop());
  CHECK(c.done == 5000);
}

TEST_CASE("after a rest that ended as woken, work counts as fresh") {
  for (const bool woken : {false, true}) {
    Counter c;
    c.after_sleep = woken ? Worker::Rest::woken : Worker::Rest::again;
    Worker w(c, kPace);
    w.start("worker");
    for (std::uint64_t i = 1; i <= 3; ++i) {
      REQUIRE(soon([&] { return c.sleeps == i; }));
      std::this_thread::sleep_for(kPace.spin);
      c.wake();
    }
    REQUIRE(soon([&] { return c.sleeps == 4; }));
    CHECK(w.stop());
    CHECK((c.spins >= 4) == woken);
  }
}

TEST_CASE("a worker that spins looks again at once, and rests when it has found nothing for a while") {
  Counter c;
  c.spinning = true;
  Worker w(c, kPace);
  w.start("worker");
  REQUIRE(soon([&] { return c.sleeps == 1; }));
  CHECK(w.stop());
  CHECK(c.spins > 1);
  CHECK(c.rounds > c.spins);
}
