// SPDX-License-Identifier: MIT
// Commands a GPU, completions and doorbells, counted in the rings: the published table, for N = 8.
#include "support.hpp"

#include <bit>

namespace collectives::test {
namespace {

/// Of a GPU, out of the dwords that its engines would read.
struct InRings {
  std::uint32_t linear{}, broadcast{}, swap{}, atomics{}, fences{}, polls{}, others{}, doorbells{};
};

std::vector<InRings> count(const Run& r) {
  const auto& s = r.plan().schedule;
  std::vector<InRings> all(s.gpus);
  for (std::size_t q = 0; q < s.queues.size(); ++q) {
    auto& c = all[s.queues[q].place.index];
    const auto& ring = r.bound().ring(q);
    const auto end = ring.positions().committed;
    REQUIRE(end <= ring.memory().dwords.size_bytes());
    c.doorbells += end != 0;
    for (Reader reader{ring.memory().dwords.first(end / 4)}; reader;) {
      const auto v = reader.next();
      if (v.is<CopyLinear>()) ++c.linear;
      else if (v.is<CopyBroadcast>()) ++c.broadcast;
      else if (v.is<CopySwap>()) ++c.swap;
      else if (v.is<Atomic>()) ++c.atomics;
      else if (v.is<Fence>()) ++c.fences;
      else if (v.is<PollMem>()) ++c.polls;
      else ++c.others;
    }
  }
  return all;
}

std::uint32_t total(const std::vector<InRings>& all, std::uint32_t InRings::*what) {
  std::uint32_t n = 0;
  for (const auto& c : all) n += c.*what;
  return n;
}

/// Released by the host, with one poll in each group.
constexpr Prelaunch kByHost[] = {Prelaunch::off, Prelaunch::shared, Prelaunch::per_group};

Run published(SoftDevice& d, Options o) {
  o.gpus = 8;
  o.bytes = 8 << 10;
  auto r = prepared(planned(o), d);
  CHECK(r.plan().notes.empty());
  if (o.prelaunch == Prelaunch::off || o.prelaunch == Prelaunch::stream) {
    REQUIRE(r.start(soon()));
    REQUIRE(r.wait(soon()));
  }
  return r;
}

}  // namespace

TEST_CASE("pcpy: 7 copies, 7 completions, 7 doorbells a GPU, each on an engine of its own") {
  const auto d = node();
  for (const auto c : {Collective::all_gather, Collective::all_to_all})
    for (const auto p : kByHost) {
      const auto r = published(*d, {.collective = c, .variant = Variant::pcpy, .prelaunch = p});
      const auto all = count(r);
      for (const auto& gpu : all) {
        CHECK((gpu.linear == 7 && gpu.atomics == 7 && gpu.doorbells == 7));
        CHECK(gpu.polls == (p == Prelaunch::off ? 0 : 7));
        CHECK(gpu.broadcast + gpu.swap + gpu.fences + gpu.others == 0);
      }
      CHECK(total(all, &InRings::doorbells) == 56);
      std::uint64_t engines = 0;
      for (std::size_t q = 0; q < 7; ++q) engines |= std::uint64_t{1} << r.bound().queue(q).engine().value;
      CHECK(std::popcount(engines) == 7);
    }
}

TEST_CASE("for streams, a group polls a word of each GPU that it touches") {
  const auto d = node();
  const auto polls = [&](Collective c, Variant v) {
    const auto all = count(published(*d, {.collective = c, .variant = v, .prelaunch = Prelaunch::stream}));
    return all[3].polls;
  };
  CHECK(polls(Collective::all_gather, Variant::pcpy) == 7 * 2);
  CHECK(polls(Collective::all_gather, Variant::bcst) == 3 * 3 + 2);
  CHECK(polls(Collective::all_to_all, Variant::b2b) == 8);
  CHECK(polls(Collective::gather, Variant::pcpy) == 2);
  CHECK(polls(Collective::gather, Variant::b2b) == 0);
}

TEST_CASE("bcst: 3 pairs and 1 single, a pair on its second peer's engine") {
  const auto d = node();
  for (const auto p : kByHost) {
    const auto r = published(*d, {.collective = Collective::all_gather, .variant = Variant::bcst, .prelaunch = p});
    const auto all = count(r);
    for (const auto& gpu : all) {
      CHECK((gpu.broadcast == 3 && gpu.linear == 1 && gpu.atomics == 4 && gpu.doorbells == 4));
      CHECK(gpu.polls == (p == Prelaunch::off ? 0 : 4));
    }
    CHECK(total(all, &InRings::doorbells) == 32);
    CHECK(r.bound().queue(0).engine() == *d->topology().engine_for(GpuId{0}, GpuId{2}));
    CHECK(r.bound().queue(3).engine() == *d->topology().engine_for(GpuId{0}, GpuId{7}));
  }
}

TEST_CASE("swap: 28 pairs, 3 or 4 of them a GPU") {
  const auto d = node();
  for (const auto p : kByHost) {
    const auto all =
        count(published(*d, {.collective = Collective::all_to_all, .variant = Variant::swap, .prelaunch = p}));
    for (const auto& gpu : all) {
      CHECK((gpu.swap == 3 || gpu.swap == 4));
      CHECK((gpu.atomics == gpu.swap && gpu.doorbells == gpu.swap && gpu.linear == 0));
      CHECK(gpu.polls == (p == Prelaunch::off ? 0 : gpu.swap));
    }
    CHECK(total(all, &InRings::doorbells) == 28);
  }
}

TEST_CASE("b2b: 7 copies on one engine, one completion, one doorbell a GPU") {
  const auto d = node();
  for (const auto c : {Collective::all_gather, Collective::all_to_all})
    for (const auto p : kByHost) {
      const auto all = count(published(*d, {.collective = c, .variant = Variant::b2b, .prelaunch = p}));
      for (const auto& gpu : all) {
        CHECK((gpu.linear == 7 && gpu.atomics == 1 && gpu.doorbells == 1));
        CHECK(gpu.polls == (p == Prelaunch::off ? 0 : 1));
      }
      CHECK(total(all, &InRings::doorbells) == 8);
    }
}

TEST_CASE("peers an engine and the engine list are settings") {
  const auto d = node();
  const auto r = published(
      *d, {.collective = Collective::all_gather, .variant = Variant::b2b, .peers_per_engine = 3, .engines = {5, 2}});
  for (const auto& gpu : count(r)) CHECK((gpu.linear == 7 && gpu.atomics == 3 && gpu.doorbells == 3));
  CHECK(r.bound().queue(0).engine() == EngineId{5});
  CHECK(r.bound().queue(1).engine() == EngineId{2});
  CHECK(r.bound().queue(2).engine() == EngineId{5});
}

TEST_CASE("a completion is an atomic, a fence, or two fences") {
  const auto d = node();
  for (const auto v : {Variant::pcpy, Variant::bcst, Variant::b2b}) {
    const auto fence = count(published(*d, {.variant = v, .completion = Completion::fence}));
    const auto two = count(published(*d, {.variant = v, .completion = Completion::two_fences}));
    for (std::size_t g = 0; g < 8; ++g) {
      CHECK((fence[g].atomics == 0 && fence[g].fences == fence[g].doorbells));
      CHECK((two[g].atomics == 0 && two[g].fences == 2 * two[g].doorbells));
    }
  }
}

TEST_CASE("the plan says what the rings hold, fallbacks included") {
  const auto d = node();
  for (const auto c : kCollectives)
    for (const auto v : kVariants) {
      if (!has_variant(c, v)) continue;
      auto r = prepared(planned({.collective = c, .variant = v, .gpus = 7, .bytes = 1001, .offsets = {0, 5, 64}}), *d);
      REQUIRE(r.start(soon()));
      REQUIRE(r.wait(soon()));
      const auto all = count(r);
      for (std::size_t g = 0; g < 7; ++g) {
        const auto& plan = r.plan().counts[g];
        INFO(describe(r.plan().options) << " gpu" << g);
        CHECK(plan.data == all[g].linear + all[g].broadcast + all[g].swap);
        CHECK(plan.completions == all[g].atomics);
        CHECK(plan.doorbells == all[g].doorbells);
        // Those of barriers, a fence and a poll each.
        CHECK(all[g].fences == all[g].polls);
        if (v != Variant::swap) CHECK(all[g].polls == 0);
      }
    }
}

}  // namespace collectives::test
