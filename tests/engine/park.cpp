// SPDX-License-Identifier: MIT
// Nobody who sleeps is forgotten: whoever is, ends these tests at their deadline.
#include "../../lib/engine/park.hpp"

#include "support/catch.hpp"

#include <array>
#include <thread>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;
using detail::Parking;

namespace {

Deadline soon() { return Deadline::in(60s); }

}  // namespace

TEST_CASE("a wake between ticket and sleep is not lost, and an old ticket never sleeps") {
  Parking place;
  const auto ticket = place.ticket();
  CHECK_FALSE(place.has_sleepers());
  place.wake();
  CHECK(place.ticket() != ticket);
  const auto end = soon();
  place.sleep(ticket, end);
  CHECK_FALSE(end.passed());
  CHECK_FALSE(place.has_sleepers());
}

TEST_CASE("a sleep ends at its deadline, and until the next wake the place counts it as asleep") {
  Parking place;
  const auto ticket = place.ticket();
  // A thread that does not run for so long never sleeps: then again.
  for (int i = 0; i < 1000 && !place.has_sleepers(); ++i) {
    const auto end = Deadline::in(1ms);
    while (!end.passed()) place.sleep(ticket, end);
  }
  CHECK(place.has_sleepers());
  CHECK(place.ticket() == ticket);  // going to sleep is not a wake
  place.wake();
  CHECK_FALSE(place.has_sleepers());
  const auto later = soon();
  place.sleep_unless(later, [] { return true; });
  CHECK_FALSE(later.passed());
}

TEST_CASE("two threads wake each other 20,000 times") {
  constexpr int kRounds = 20000;
  std::array<Parking, 2> places;
  std::atomic<int> turn{0};
  std::atomic<bool> late{false};
  const auto play = [&](int me) {
    const auto end = soon();
    for (int i = me; i < kRounds && !late; i += 2) {
      for (;;) {
        const auto ticket = places[static_cast<std::size_t>(me)].ticket();
        if (turn.load() == i) break;
        places[static_cast<std::size_t>(me)].sleep(ticket, end);
        if (end.passed()) late = true;
        if (late) break;
      }
      turn.store(i + 1);
      places[static_cast<std::size_t>(1 - me)].wake();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  CHECK_FALSE(late);
}

TEST_CASE("several threads sleep in one place for words of their own, and a waker calls wake only if a thread sleeps") {
  constexpr int kSleepers = 3, kRounds = 3000;
  Parking place;
  std::array<std::atomic<int>, kSleepers> words{};
  std::atomic<int> seen{0};
  std::atomic<bool> late{false};
  std::vector<std::thread> sleepers;
  for (auto& word : words)
    sleepers.emplace_back([&] {
      const auto end = soon();
      for (int i = 1; i <= kRounds && !late; ++i) {
        while (word.load() < i && !late) {
          place.sleep_unless(end, [&] { return word.load() >= i; });
          if (end.passed()) late = true;
        }
        ++seen;
      }
    });
  for (int i = 1; i <= kRounds; ++i) {
    for (auto& word : words) {
      word.store(i);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (place.has_sleepers()) place.wake();
    }
    while (seen < i * kSleepers && !late) std::this_thread::yield();
  }
  for (auto& t : sleepers) t.join();
  CHECK_FALSE(late);
}
