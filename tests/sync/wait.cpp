// SPDX-License-Identifier: MIT
#include "sdma/sync/wait.hpp"

#include "support.hpp"
#include "support/catch.hpp"

#include <condition_variable>
#include <mutex>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

std::uint64_t reads = 0;
StallReport one_report(const void*, Generation) noexcept { return {.ring_bytes = 1024, .read = 8}; }
std::uint64_t one_read(const void*) noexcept { return ++reads; }

/// A hook as a software device has it: sleeps on a condition, woken by whoever changes the word.
struct Sleeper {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> slept{0};

  static void sleep(void* self, std::uint64_t* word, std::uint64_t seen, Deadline d) noexcept {
    auto& s = *static_cast<Sleeper*>(self);
    std::unique_lock lock(s.mutex);
    ++s.slept;
    s.changed.wait_until(lock, d.at, [&] { return std::atomic_ref(*word).load(std::memory_order_acquire) != seen; });
  }
  void raise(const Signal& s) {
    {
      std::lock_guard lock(mutex);
      s.add(1);
    }
    changed.notify_all();
  }
};

}  // namespace

TEST_CASE("a wait whose condition holds needs no time, not even a deadline that is ahead") {
  std::uint64_t word = 5;
  const Signal s{.word = &word};
  const auto v = wait(s, Compare::ge, 5, test::past());
  REQUIRE(v);
  CHECK(*v == 5);
}

TEST_CASE("each comparison, on both sides of its edge") {
  std::uint64_t word = 5;
  const Signal s{.word = &word};
  const auto met = [&](Compare f, std::uint64_t reference) { return wait(s, f, reference, test::past()).has_value(); };
  CHECK(met(Compare::always, 9));
  CHECK((met(Compare::lt, 6) && !met(Compare::lt, 5)));
  CHECK((met(Compare::le, 5) && !met(Compare::le, 4)));
  CHECK((met(Compare::eq, 5) && !met(Compare::eq, 4)));
  CHECK((met(Compare::ne, 4) && !met(Compare::ne, 5)));
  CHECK((met(Compare::ge, 5) && !met(Compare::ge, 6)));
  CHECK((met(Compare::gt, 4) && !met(Compare::gt, 5)));
}

TEST_CASE("all 64 bits are compared") {
  std::uint64_t word = 0x1'0000'0000;
  const Signal s{.word = &word};
  CHECK(wait(s, Compare::gt, 0xffffffff, test::past()));
  CHECK_FALSE(wait(s, Compare::eq, 0, test::past()));
}

TEST_CASE("a wait ends at its deadline, not before, and says what it saw") {
  std::uint64_t word = 4;
  const Signal s{.word = &word, .va = GpuVa{0x7f0000001000}};
  const auto d = Deadline::in(5ms);
  const auto v = wait(s, Compare::ge, 5, d);
  REQUIRE_FALSE(v);
  CHECK(d.passed());
  const auto& r = v.error();
  CHECK(r.signal == s.va);
  CHECK(r.func == Compare::ge);
  CHECK(r.reference == 5);
  CHECK(r.seen == 4);
  CHECK(r.signals == 1);
  CHECK(r.ring_bytes == 0);
}

TEST_CASE("with a ring the report is of that ring, and knows where it stood when the wait began") {
  std::uint64_t word = 0;
  int ring = 0;
  WaitCondition u{Signal{.word = &word}, Compare::eq, 1, {}};
  u.ring.ring = &ring;
  u.ring.inspect = one_report;
  u.ring.read = one_read;
  reads = 41;
  const auto v = wait(u, test::past());
  REQUIRE_FALSE(v);
  CHECK(v.error().ring_bytes == 1024);
  CHECK(v.error().read == 8);
  CHECK(v.error().read_first == 42);

  test::RingBytes bytes;
  Ring<> real{bytes.memory()};
  REQUIRE(real.submit(Nop{3}) == Errc::ok);
  const auto w = wait(u.signal, Compare::eq, 1, test::past(), real);
  REQUIRE_FALSE(w);
  CHECK(w.error().committed == 12);
  CHECK(w.error().reference == 1);
}

TEST_CASE("a wait of every length sees the value that another thread stores, and what is behind it") {
  // Long enough ahead to be met while spinning, yielding and napping.
  for (const auto delay : {0us, 20us, 200us, 3000us}) {
    std::uint64_t word = 0;
    int data = 0;
    const Signal s{.word = &word};
    std::thread writer([&] {
      std::this_thread::sleep_for(delay);
      data = 7;
      s.set(1, Caching::write_back);
    });
    const auto v = wait(s, Compare::eq, 1, test::far());
    REQUIRE(v);
    CHECK(data == 7);
    writer.join();
  }
}

TEST_CASE("naps grow, are bounded, and never go past the deadline") {
  Backoff b;
  const auto d = Deadline::in(20ms);
  unsigned steps = 0;
  while (b.step(d)) ++steps;
  CHECK(d.passed());
  // Naps of 10 us, twice as long each time up to 1 ms: 20 ms take far fewer than a million.
  CHECK(steps < Backoff::kSpins + Backoff::kYields + 2100);
  CHECK_FALSE(Backoff{}.step(test::past()));
}

TEST_CASE("the hook replaces yields and naps, with the value seen and the deadline") {
  struct Call {
    std::uint64_t* word{};
    std::uint64_t seen{};
    Deadline d{};
    int calls = 0;
  } call;
  std::uint64_t word = 4;
  const auto hook = [](void* c, std::uint64_t* w, std::uint64_t seen, Deadline d) noexcept {
    auto& it = *static_cast<Call*>(c);
    it.word = w;
    it.seen = seen;
    it.d = d;
    if (++it.calls == 3) *w = 5;  // twice for nothing, as a hook may
  };
  const Signal s{.word = &word, .sleep = hook, .context = &call};
  const auto d = test::far();
  const auto v = wait(s, Compare::eq, 5, d);
  REQUIRE(v);
  CHECK(call.calls == 3);
  CHECK(call.word == &word);
  CHECK(call.seen == 4);
  CHECK(call.d.at == d.at);
}

TEST_CASE("a hook that returns early forever does not outlive the deadline") {
  std::uint64_t word = 0;
  const auto hook = [](void*, std::uint64_t*, std::uint64_t, Deadline) noexcept {};
  const auto v = wait(Signal{.word = &word, .sleep = hook}, Compare::eq, 1, test::soon());
  CHECK_FALSE(v);
}

TEST_CASE("no wake-up is lost between two threads that sleep by hook") {
  constexpr std::uint64_t kRounds = 2000;
  std::uint64_t ping_word = 0, pong_word = 0;
  Sleeper sleeper;
  const Signal ping{.word = &ping_word, .sleep = Sleeper::sleep, .context = &sleeper};
  const Signal pong{.word = &pong_word, .sleep = Sleeper::sleep, .context = &sleeper};
  bool other_ok = true;
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= kRounds && other_ok; ++i) {
      other_ok = wait(ping, Compare::ge, i, test::far()).has_value();
      sleeper.raise(pong);
    }
  });
  bool ok = true;
  for (std::uint64_t i = 1; i <= kRounds && ok; ++i) {
    sleeper.raise(ping);
    ok = wait(pong, Compare::ge, i, test::far()).has_value();
  }
  other.join();
  CHECK(ok);
  CHECK(other_ok);
  CHECK(pong_word == kRounds);
}

TEST_CASE("no value is lost between two threads that spin, yield and nap") {
  constexpr std::uint64_t kRounds = 2000;
  std::uint64_t ping_word = 0, pong_word = 0;
  const Signal ping{.word = &ping_word}, pong{.word = &pong_word};
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      if (!wait(ping, Compare::ge, i, test::far())) return;
      pong.set(i);
    }
  });
  bool ok = true;
  for (std::uint64_t i = 1; i <= kRounds && ok; ++i) {
    ping.set(i);
    ok = wait(pong, Compare::ge, i, test::far()).has_value();
  }
  other.join();
  CHECK(ok);
}

TEST_CASE("wait_all takes each, and names the first that did not come") {
  std::uint64_t a = 1, b = 0, c = 0;
  const WaitCondition all[] = {{Signal{.word = &a}, Compare::ge, 1, {}},
                               {Signal{.word = &b, .va = GpuVa{0x2000}}, Compare::ge, 1, {}},
                               {Signal{.word = &c, .va = GpuVa{0x3000}}, Compare::ge, 1, {}}};
  const auto v = wait_all(all, test::past());
  REQUIRE_FALSE(v);
  CHECK(v.error().index == 1);
  CHECK(v.error().signals == 3);
  CHECK(v.error().signal == GpuVa{0x2000});
  b = c = 1;
  CHECK(wait_all(all, test::past()));
  CHECK(wait_all({}, test::past()));
}

TEST_CASE("wait_all sees signals that come in any order") {
  std::vector<std::uint64_t> words(8);
  std::vector<WaitCondition> all;
  for (auto& w : words) all.push_back({Signal{.word = &w}, Compare::eq, 1, {}});
  std::thread writer([&] {
    for (auto i = words.size(); i-- > 0;) all[i].signal.set(1);
  });
  CHECK(wait_all(all, test::far()));
  writer.join();
}

TEST_CASE("wait_any takes the lowest that holds, and tells of the first otherwise") {
  std::uint64_t a = 0, b = 0, c = 0;
  const WaitCondition any[] = {{Signal{.word = &a, .va = GpuVa{0x1000}}, Compare::ge, 1, {}},
                               {Signal{.word = &b}, Compare::ge, 1, {}},
                               {Signal{.word = &c}, Compare::ge, 1, {}}};
  const auto none = wait_any(any, test::soon());
  REQUIRE_FALSE(none);
  CHECK(none.error().index == 0);
  CHECK(none.error().signals == 3);
  CHECK(none.error().signal == GpuVa{0x1000});
  b = c = 1;
  const auto v = wait_any(any, test::past());
  REQUIRE(v);
  CHECK(*v == 1);
  std::thread writer([&] { any[0].signal.set(1); });
  const WaitCondition last[] = {any[0]};
  CHECK(wait_any(last, test::far()));
  writer.join();
}

TEST_CASE("waiting for one of no signals is an error at once, whatever the deadline") {
  const auto v = wait_any({}, test::far());
  REQUIRE_FALSE(v);
  CHECK(v.error().signals == 0);
}

// The table of wait.hpp: a word that two fences raise stands for a while at half of the new value.
TEST_CASE("which waits a half-written word satisfies too early") {
  const std::uint64_t old = 0xffffffff, fresh = 0x1'0000'0000;
  const auto high_first = fresh | low_half(old), low_first = std::uint64_t{low_half(fresh)};
  const auto met = [](std::uint64_t word, Compare f, std::uint64_t reference) {
    return wait(Signal{.word = &word}, f, reference, test::past()).has_value();
  };
  CHECK(met(high_first, Compare::ge, fresh + 1));    // too early: the word has not even been `fresh`
  CHECK_FALSE(met(low_first, Compare::ge, fresh));   // sound
  CHECK_FALSE(met(high_first, Compare::eq, fresh));  // sound
  CHECK_FALSE(met(low_first, Compare::eq, fresh));   // sound
  CHECK(met(high_first, Compare::ne, old));          // too early
  CHECK(met(low_first, Compare::ne, old));           // too early
  const auto falling_high_first = std::uint64_t{low_half(fresh)}, falling_low_first = fresh | low_half(old);
  CHECK(met(falling_high_first, Compare::lt, old));       // too early: from `fresh` down to `old`
  CHECK_FALSE(met(falling_low_first, Compare::le, old));  // sound
  CHECK(met(falling_high_first, Compare::eq, 0));         // too early, as the high half was not zero
}
