// SPDX-License-Identifier: MIT
// A step returns soon, however large the packets are, and a packet
// that takes several steps still lands as the ordering says.
#include "../../lib/engine/allowance.hpp"
#include "engine/rig.hpp"

#include <algorithm>

using namespace sdma;
using namespace sdma::test;
using detail::Allowance;

namespace {

constexpr auto kOrderings = {Ordering::strict, Ordering::rocr, Ordering::adversarial};
/// The last part of a step may exceed what is left.
constexpr std::uint64_t kMost = Allowance::kStep + Allowance::kLeast;
constexpr std::uint64_t kLarge = 3 * Allowance::kStep + 4096;

/// A rig with large memory at 0x10000000, whose bytes are counted.
struct Large {
  explicit Large(const RigOptions& o) : rig(o) { REQUIRE(rig.space.map(memory.mapping()) == Errc::ok); }
  std::uint64_t count(int byte) {
    return static_cast<std::uint64_t>(std::count(memory.data(), memory.data() + memory.size(), std::byte(byte)));
  }
  Fill fill(std::uint32_t byte) const {
    return {.dst = memory.va, .data = byte, .bytes = kLarge, .unit = FillUnit::byte};
  }
  /// Steps to the end; returns by how much the count of `byte` rose at most in one step.
  std::uint64_t most_in_a_step(int byte, Progress end = Progress::idle) {
    rig.pipeline->doorbell(rig.wptr);
    std::uint64_t most = 0;
    for (auto before = count(byte);;) {
      const auto p = rig.pipeline->step(64);
      const auto now = count(byte);
      most = std::max(most, now - std::min(now, before));
      before = now;
      if (p == Progress::progressed) continue;
      CHECK(p == end);
      return most;
    }
  }
  Memory memory{GpuVa{0x10000000}, kLarge};
  Rig rig;
};

}  // namespace

TEST_CASE("a step stores a few MiB, and the next one continues in the same packet") {
  for (const auto o : kOrderings) {
    INFO(name(o));
    Large l{{.ordering = o}};
    l.rig.put(l.fill(1));
    l.rig.put(Fence{.addr = l.rig.a(0), .value = 5});
    CHECK(l.most_in_a_step(1) <= kMost);
    CHECK(l.count(1) == kLarge);
    CHECK(l.rig.at(l.rig.a(0)) == 5);
    CHECK(l.rig.pipeline->counters().bytes == kLarge);
    CHECK(l.rig.pipeline->counters().packets == 2);
  }
}

TEST_CASE("a fence does not land while the copy before it has landed in part") {
  for (const auto o : kOrderings) {
    Large l{{.ordering = o}};
    l.rig.at(l.rig.a(0)) = 0;
    l.rig.put(l.fill(1));
    l.rig.put(Fence{.addr = l.rig.a(0), .value = 5});
    l.rig.pipeline->doorbell(l.rig.wptr);
    while (l.rig.pipeline->step(1) == Progress::progressed)
      if (l.rig.at(l.rig.a(0)) == 5) REQUIRE(l.count(1) == kLarge);
    CHECK(l.rig.at(l.rig.a(0)) == 5);
  }
}

TEST_CASE("short rows count as more than their bytes") {
  for (const auto o : kOrderings) {
    INFO(name(o));
    Large l{{.ordering = o}};
    constexpr std::uint32_t kRows = 1 << 14, kSlices = 16, kPitch = 4, kSlice = kPitch * kRows;
    constexpr std::uint64_t kFrom = 8 << 20;
    std::fill_n(l.memory.data() + kFrom, kSlice * kSlices, std::byte{1});
    l.rig.put(CopySubwindow{.src = l.memory.va + kFrom,
                            .dst = l.memory.va,
                            .src_pitch = kPitch,
                            .dst_pitch = kPitch,
                            .src_slice = kSlice,
                            .dst_slice = kSlice,
                            .y = kRows,
                            .z = kSlices});
    const auto most = l.most_in_a_step(1);
    CHECK(most <= Allowance::kStep / Allowance::kRow + 64);
    CHECK(most > 0);
    CHECK(l.count(1) == (kPitch + 1) * kRows * kSlices);
  }
}

TEST_CASE("in strict and rocr, no other packet lands between two parts of a packet") {
  for (const auto o : {Ordering::strict, Ordering::rocr})
    for (std::uint64_t seed = 0; seed < (o == Ordering::strict ? 1u : 10u); ++seed) {
      Large l{{.ordering = o, .seed = seed}};
      for (std::uint32_t byte = 1; byte <= 4; ++byte) l.rig.put(l.fill(byte));
      l.rig.go();
      const int last = std::to_integer<int>(*l.memory.data());
      CHECK(l.count(last) == kLarge);
      if (o == Ordering::strict) CHECK(last == 4);
    }
}

TEST_CASE("what lands before a fault takes several steps, too") {
  Large l{{.ordering = Ordering::rocr}};
  l.rig.put(l.fill(1));
  l.rig.put(Fence{.addr = GpuVa{0x900000}, .value = 1});
  CHECK(l.most_in_a_step(1, Progress::stopped) <= kMost);
  CHECK(l.count(1) == kLarge);
  REQUIRE(l.rig.pipeline->fault());
  CHECK(l.rig.pipeline->fault()->kind == FaultKind::unmapped);
}

TEST_CASE("memory that goes between two parts of a packet stops its queue") {
  for (const auto o : kOrderings) {
    Large l{{.ordering = o}};
    l.rig.put(l.fill(1));
    l.rig.pipeline->doorbell(l.rig.wptr);
    while (l.count(1) == 0) REQUIRE(l.rig.pipeline->step(1) == Progress::progressed);
    REQUIRE(l.rig.space.unmap(l.memory.va, Deadline{}) == Errc::ok);
    CHECK(l.rig.drain() == Progress::stopped);
    REQUIRE(l.rig.pipeline->fault());
    CHECK(l.rig.pipeline->fault()->kind == FaultKind::unmapped);
  }
}
