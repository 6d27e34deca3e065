// SPDX-License-Identifier: MIT
// A queue that sleeps on purpose: what it does not do meanwhile, and that where it sleeps depends on the seed alone.
#include "../../lib/engine/sleepiness.hpp"

#include "engine/rig.hpp"

#include <set>

using namespace sdma;
using namespace sdma::test;

namespace {

/// Sleeps at the places whose numbers it is given, and chooses 0 everywhere else.
class Sleeps final : public Chooser {
 public:
  explicit Sleeps(std::set<int> where) : where_(std::move(where)) {}
  std::uint32_t choose(Choice what, std::uint32_t) noexcept override {
    if (what == Choice::front) return 1;
    if (what != Choice::sleep) return 0;
    if (coin_ != 0) return --coin_, 1u;  // the same place: it asks until the answers suffice
    const bool yes = where_.count(place_++) != 0;
    if (yes) coin_ = 1;
    return yes;
  }

 private:
  std::set<int> where_;
  int place_ = 0, coin_ = 0;
};

RigOptions sleepy(Chooser* c, std::uint64_t seed = 1) {
  RigOptions o{.ordering = Ordering::adversarial, .seed = seed};
  o.more.chooser = c;
  o.more.sleeps = true;
  return o;
}

}  // namespace

TEST_CASE("a queue that sleeps at its doorbell sees none, then the last") {
  Sleeps at_first{{0}};
  Rig rig{sleepy(&at_first)};
  rig.put(Fence{.addr = rig.a(0), .value = 1});
  CHECK(rig.run() == Progress::waiting);
  CHECK(rig.pipeline->asleep());
  CHECK(!rig.pipeline->ready());
  CHECK(rig.pipeline->waits_for() == GpuVa{});
  rig.put(Fence{.addr = rig.a(8), .value = 2});
  CHECK(rig.run() == Progress::waiting);
  CHECK(rig.at(rig.a(0)) == 0xcdcdcdcd);
  CHECK(rig.pipeline->counters().doorbells == 0);
  rig.pipeline->awaken();
  CHECK(!rig.pipeline->asleep());
  CHECK(rig.pipeline->ready());
  CHECK(rig.drain() == Progress::idle);
  CHECK(rig.at(rig.a(0)) == 1);
  CHECK(rig.at(rig.a(8)) == 2);
  CHECK(rig.pipeline->counters().doorbells == 1);
}

TEST_CASE("a queue that sleeps between two packets has executed the first of them, and not fetched the second") {
  Sleeps before_second{{2}};  // the doorbell, the first packet, the second packet
  Rig rig{sleepy(&before_second)};
  rig.put(Fence{.addr = rig.a(0), .value = 1});
  const auto second = rig.wptr;
  rig.put(Fence{.addr = rig.a(0), .value = 2});
  CHECK(rig.run() == Progress::waiting);
  CHECK(rig.pipeline->asleep());
  CHECK(rig.at(rig.a(0)) == 1);
  CHECK(rig.pipeline->position() == second);
  CHECK(rig.rptr == second);
  encode_to(Fence{.addr = rig.a(0), .value = 3}, rig.ring.data() + second / 4);
  rig.pipeline->awaken();
  CHECK(rig.drain() == Progress::idle);
  CHECK(rig.at(rig.a(0)) == 3);
}

TEST_CASE("a doorbell that goes back is a fault in a sleeping queue, too") {
  Sleeps at_first{{0}};
  Rig rig{sleepy(&at_first)};
  rig.put(Nop{});
  rig.put(Nop{});
  CHECK(rig.run() == Progress::waiting);
  rig.pipeline->doorbell(4);
  REQUIRE(rig.pipeline->fault());
  CHECK(rig.pipeline->fault()->rule == "backwards");
  rig.pipeline->awaken();
  CHECK(rig.pipeline->step(1) == Progress::stopped);
}

TEST_CASE("where a queue sleeps depends on its seed and its packets, not on who steps it and when") {
  const auto naps = [](std::uint64_t seed, std::uint32_t budget, int idle_steps) {
    Rig rig{sleepy(nullptr, seed)};
    std::vector<std::uint64_t> out;
    for (int round = 0; round < 3; ++round) {
      for (std::uint64_t i = 0; i < 20; ++i)
        rig.put(CopyLinear{.src = rig.a(64 * i), .dst = rig.b(64 * i), .bytes = 64});
      rig.pipeline->doorbell(rig.wptr);
      for (int i = 0; i < 1'000'000; ++i) {
        const auto p = rig.pipeline->step(budget);
        if (p == Progress::idle) break;
        if (p != Progress::waiting) continue;
        REQUIRE(rig.pipeline->asleep());
        for (int j = 0; j < idle_steps; ++j) CHECK(rig.pipeline->step(budget) == Progress::waiting);
        out.push_back(rig.pipeline->position());
        rig.pipeline->awaken();
      }
    }
    CHECK(rig.rptr == rig.wptr);
    return out;
  };
  std::set<std::vector<std::uint64_t>> all;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto a = naps(seed, 1, 0);
    CHECK(a == naps(seed, 64, 0));
    CHECK(a == naps(seed, 7, 3));
    all.insert(a);
  }
  CHECK(all.size() > 40);
}

TEST_CASE("sleep is frequent at first, and rare in a long run") {
  int first = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first += detail::Sleepiness{seed, 1}.falls_asleep();
  CHECK(first > 180);
  CHECK(first < 320);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    detail::Sleepiness s{seed, 1};
    int naps = 0;
    for (int i = 0; i < 100'000; ++i) naps += s.falls_asleep();
    CHECK(naps > 10);
    CHECK(naps < 60);
  }
}

TEST_CASE("neighbouring seeds and streams do not sleep together") {
  for (const std::uint64_t step : {1u, 2u, 4u, 5u, 9u}) {
    int both = 0;
    for (std::uint64_t seed = 0; seed < 1600; ++seed)
      both += detail::Sleepiness{seed, 1}.falls_asleep() && detail::Sleepiness{seed + step, 1}.falls_asleep();
    CHECK(both > 60);  // 100, if they are independent
    CHECK(both < 150);
  }
}
