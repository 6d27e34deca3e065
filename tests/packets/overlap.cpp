// SPDX-License-Identifier: MIT
// Overlaps within one packet and the extent of a box: compared with a list of all bytes.
#include "packets/overlap.hpp"
#include "support/catch.hpp"

#include <random>
#include <set>

using namespace sdma;

namespace {

constexpr GpuVa kA{0x10000}, kB{0x20000};

std::multiset<std::uint64_t> bytes_of(const Region& r) {
  std::multiset<std::uint64_t> all;
  for (std::uint64_t z = 0; z < r.slices; ++z)
    for (std::uint64_t y = 0; y < r.rows; ++y)
      for (std::uint64_t x = 0; x < r.bytes; ++x) all.insert(r.va.value + z * r.slice_pitch + y * r.pitch + x);
  return all;
}

}  // namespace

TEST_CASE("two boxes meet if they have a byte in common") {
  std::mt19937 random{7};
  const auto upto = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % (n + 1)); };
  unsigned meeting = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto box = [&] {
      return Region{.va = kA + upto(60),
                    .bytes = upto(4),
                    .rows = upto(5),
                    .pitch = upto(9),
                    .slices = upto(3),
                    .slice_pitch = upto(30)};
    };
    const auto a = box(), b = box();
    const auto in_a = bytes_of(a), in_b = bytes_of(b);
    bool common = false;
    for (const auto x : in_a) common = common || in_b.count(x) != 0;
    meeting += common;
    CAPTURE(a.va.value, a.bytes, a.rows, a.pitch, a.slices, a.slice_pitch);
    CAPTURE(b.va.value, b.bytes, b.rows, b.pitch, b.slices, b.slice_pitch);
    if (detail::meet(a, b) != common) FAIL("wrong");
    const auto extent = in_a.empty() ? 0 : *in_a.rbegin() + 1 - *in_a.begin();
    if (hull(a) != extent || end_of(a) != a.va + extent) FAIL("not the extent of the box");
    // Never the reverse: a box without a repeated byte may count as one with.
    if (!detail::meets_itself(a) && std::set<std::uint64_t>(in_a.begin(), in_a.end()).size() != in_a.size())
      FAIL("a byte is in the box twice");
  }
  CHECK(meeting > 2000);
  CHECK(meeting < 17000);
}

TEST_CASE("the extent of a box that 64 bits cannot hold is the largest number") {
  constexpr auto kMost = ~std::uint64_t{};
  STATIC_REQUIRE(hull({.va = kA, .bytes = kMost}) == kMost);
  STATIC_REQUIRE(hull({.va = kA, .bytes = 8, .rows = 3, .pitch = (kMost - 8) / 2}) == kMost - 1);
  STATIC_REQUIRE(hull({.va = kA, .bytes = 8, .rows = 3, .pitch = kMost / 2}) == kMost);
  STATIC_REQUIRE(hull({.va = kA, .bytes = 8, .rows = 2, .pitch = kMost / 2, .slices = 2, .slice_pitch = kMost / 2}) ==
                 kMost);
  STATIC_REQUIRE(hull({.va = kA, .bytes = 8, .rows = ~0u, .pitch = 0, .slices = ~0u, .slice_pitch = 0}) == 8);
  STATIC_REQUIRE(end_of({.va = kA, .bytes = kMost}) == GpuVa{kMost});
  STATIC_REQUIRE(end_of({.va = GpuVa{kMost - 1}, .bytes = 1}) == GpuVa{kMost});
}

TEST_CASE("an overlap names the fields, and the written one comes first") {
  const auto fields = [](const auto& p) {
    const auto o = overlap(p);
    return o ? std::string(o.first) + " " + std::string(o.second) : "";
  };
  CHECK(fields(CopyLinear{.src = kA, .dst = kA + 63, .bytes = 64}) == "dst src");
  CHECK(fields(CopyLinear{.src = kA, .dst = kA + 64, .bytes = 64}) == "");
  CHECK(fields(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kB + 32, .bytes = 64}) == "dst1 dst2");
  CHECK(fields(CopySwap{.a = kA, .b = kA + 64, .bytes = 128}) == "a b");
  CHECK(fields(CopySubwindow{.src = kA, .dst = kB, .src_pitch = 8, .dst_pitch = 8, .x = 9, .y = 2}) == "dst dst");
  CHECK(fields(CopySubwindow{.src = kA, .dst = kA, .src_pitch = 64, .dst_pitch = 64, .x = 8, .y = 2, .dst_x = 8}) ==
        "");
  CHECK(fields(CopyPhysical{.src = kA, .dst = kA, .bytes = 4}) == "dst src");
  CHECK(fields(PteCopy{.src = kA, .dst = kA, .entries = 4}) == "");
  CHECK(fields(Fence{.addr = kA}) == "");
}

TEST_CASE("boxes of a million rows are compared without listing them") {
  CopySubwindow p{.src = kA, .dst = kA + 32, .element_log2 = 0, .src_pitch = 64, .dst_pitch = 64, .x = 32, .y = 16383};
  p.src_slice = p.dst_slice = 64 * 16384;
  p.z = 2047;
  CHECK_FALSE(overlap(p));
  p.x = 33;
  CHECK(overlap(p));
}
