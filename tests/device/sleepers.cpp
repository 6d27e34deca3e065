// SPDX-License-Identifier: MIT
// Naps: each ends when all others are quiet, one after another, and none is endless.
#include "../../lib/device/sleepers.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;
using detail::Nap;
using detail::Sleepers;
using Clock = Deadline::Clock;

namespace {

/// Asks every nap again and again; returns their numbers, in the order in which they end.
std::vector<int> wake_all(Sleepers& s, std::vector<std::unique_ptr<Nap>>& naps) {
  std::vector<int> order;
  for (auto& n : naps) CHECK(!s.ends(*n));
  while (order.size() < naps.size()) {
    for (std::size_t i = 0; i < naps.size(); ++i)
      if (naps[i] && s.ends(*naps[i])) {
        order.push_back(static_cast<int>(i));
        naps[i].reset();
        break;
      }
    std::this_thread::sleep_for(10us);
  }
  return order;
}

std::vector<std::unique_ptr<Nap>> some_naps(std::uint64_t seed) {
  std::vector<std::unique_ptr<Nap>> naps;
  for (std::uint64_t i = 0; i < 4; ++i) naps.push_back(std::make_unique<Nap>(seed + i, 2));
  return naps;
}

}  // namespace

TEST_CASE("sleepers wake one after another, in an order that depends on the seed") {
  std::vector<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    // A machine that is busy with something else may exceed the longest nap: then all wake together.
    std::vector<int> first, again;
    for (int attempt = 0; attempt < 10 && (first.empty() || first != again); ++attempt) {
      first = again;
      Sleepers s;
      auto naps = some_naps(seed);
      const auto begin = Clock::now();
      again = wake_all(s, naps);
      CHECK(Clock::now() - begin >= 4 * Sleepers::kQuiet);
    }
    CHECK(first == again);
    orders.push_back(again);
  }
  CHECK(std::count(orders.begin(), orders.end(), orders[0]) < 8);
}

TEST_CASE("activity prolongs a nap, but not for ever") {
  Sleepers s;
  Nap n{1, 2};
  const auto begin = Clock::now();
  CHECK(!s.ends(n));
  do s.activity();
  while (!s.ends(n));
  CHECK(Clock::now() - begin >= Sleepers::kLongest);
  // The next nap is a new one.
  CHECK(!s.ends(n));
}

TEST_CASE("a sleeper that never asks again, or is gone, does not keep others asleep") {
  for (const bool gone : {false, true}) {
    Sleepers s;
    auto lost = some_naps(1);
    for (auto& n : lost) CHECK(!s.ends(*n));
    if (gone) lost.clear();
    Nap n{9, 2};
    const auto begin = Clock::now();
    while (!s.ends(n)) std::this_thread::sleep_for(10us);
    if (!gone) CHECK(Clock::now() - begin <= Sleepers::kLongest + 60s);
  }
}
