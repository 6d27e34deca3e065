// Do two boxes have a byte in common? Against the bytes themselves for small boxes, and in a bounded number of steps for large ones.
#include "../../lib/engine/admit.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <random>
#include <set>

using namespace sdma;
using sdma::detail::boxes_meet;

namespace {

std::set<std::uint64_t> bytes_of(const Region& r) {
  std::set<std::uint64_t> all;
  for (std::uint64_t z = 0; z < r.slices; ++z)
    for (std::uint64_t y = 0; y < r.rows; ++y)
      for (std::uint64_t x = 0; x < r.bytes; ++x) all.insert(r.va.value + z * r.slice_pitch + y * r.pitch + x);
  return all;
}

bool truth(const Region& a, const Region& b) {
  const auto all = bytes_of(a);
  for (const auto byte : bytes_of(b))
    if (all.contains(byte)) return true;
  return false;
}

}  // namespace

TEST_CASE("boxes_meet: the same answer as the bytes") {
  std::mt19937 random{7};
  const auto upto = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>{0, n}(random); };
  std::size_t met = 0, apart = 0;
  for (int i = 0; i < 60000; ++i) {
    // Every arrangement: one run, rows, slices within rows, interlaced, overlapping themselves, and pitches of zero.
    const std::uint64_t widest = 1 + upto(4), step = 1 + upto(30);
    const auto box = [&](std::uint64_t most) {
      return Region{.va = GpuVa{1000 + upto(most)},
                    .bytes = upto(widest),
                    .rows = static_cast<std::uint32_t>(1 + upto(6)),
                    .pitch = upto(step),
                    .slices = static_cast<std::uint32_t>(1 + upto(4)),
                    .slice_pitch = upto(3 * step)};
    };
    const auto a = box(150), b = box(150);
    const bool expected = truth(a, b);
    ++(expected ? met : apart);
    INFO("a " << a.va.value << " " << a.bytes << " " << a.rows << "x" << a.pitch << " " << a.slices << "x"
              << a.slice_pitch);
    INFO("b " << b.va.value << " " << b.bytes << " " << b.rows << "x" << b.pitch << " " << b.slices << "x"
              << b.slice_pitch);
    REQUIRE(boxes_meet(a, b) == expected);
    REQUIRE(boxes_meet(b, a) == expected);
  }
  CHECK(met > 10000);
  CHECK(apart > 10000);
}

TEST_CASE("boxes_meet: at the end of the addresses") {
  const Region row{.va = GpuVa{~std::uint64_t{} - 15}, .bytes = 8, .rows = 2, .pitch = 8};
  CHECK(boxes_meet(row, {.va = GpuVa{~std::uint64_t{}}, .bytes = 1, .rows = 2, .pitch = 0}));
  CHECK_FALSE(boxes_meet(row, {.va = GpuVa{0}, .bytes = 8, .rows = 2, .pitch = 8}));
}

TEST_CASE("boxes_meet: the largest boxes of a packet take no longer than small ones") {
  // Each would take minutes if rows were compared with rows. The boxes lie between each other, so no box around them helps.
  struct Case {
    std::uint64_t bytes, pitch, slice_pitch, distance;
    std::uint32_t rows = 16384, slices = 2048;
  };
  for (const auto& c : {Case{4, 16, 16 * 16384, 8},            // rows between rows
                        Case{4, 16, 32 * 16384, 16 * 16384},   // slices between slices
                        Case{4, 16 * 2048, 16, 8},             // slices within rows
                        Case{4, 20, 16 * 16384, 10, 4096}}) {  // rows that do not touch
    const Region a{.va = GpuVa{1 << 20},
                   .bytes = c.bytes,
                   .rows = c.rows,
                   .pitch = c.pitch,
                   .slices = c.slices,
                   .slice_pitch = c.slice_pitch};
    auto b = a;
    b.va = a.va + c.distance;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(boxes_meet(a, b));
    CHECK_FALSE(boxes_meet(b, a));
    b.va = a.va + (c.rows - 1) * c.pitch + (c.slices - 1) * c.slice_pitch + (c.bytes - 1);
    CHECK(boxes_meet(a, b));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  }
  // A source whose rows interlace: it has fewer pairs of slices than rows.
  const Region source{
      .va = GpuVa{1 << 20}, .bytes = 1, .rows = 2048, .pitch = 4096, .slices = 2048, .slice_pitch = 4100};
  const Region target{
      .va = source.va + 4100 * 2048 + 1, .bytes = 1, .rows = 2048, .pitch = 8, .slices = 2048, .slice_pitch = 4104};
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(boxes_meet(source, target));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}
