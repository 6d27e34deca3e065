// SPDX-License-Identifier: MIT
// An engine executes the packets of its generation, and no others.
#include "engine/rig.hpp"
#include "sdma/packets/catalogue.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

RigOptions of(Generation g) {
  RigOptions o;
  o.more.generation = g;
  return o;
}
template <Packet P> void put(Rig& rig, const P& p, Generation g) {
  std::vector<std::uint32_t> d(length(p, g));
  encode_to(p, d.data(), g);
  for (const auto w : d) rig.put_dword(w);
}

}  // namespace

TEST_CASE("what a runtime sends to gfx11 runs there") {
  constexpr auto g = Generation::v6_0;
  Rig rig{of(g)};
  rig.first.randomise(1);
  put(rig, Gcr{.gl2_writeback = true, .glk_writeback = true}, g);
  put(rig, HdpFlush{}, g);
  put(rig, CopyLinear{.src = rig.a(0), .dst = rig.b(0), .bytes = 64}, g);
  put(rig, Fence{.addr = rig.b(64), .value = 7, .mtype = 3}, g);
  put(rig, PollMem{.addr = rig.b(64), .reference = 7}, g);
  put(rig, DummyTrap{}, g);
  rig.go();
  CHECK(std::memcmp(rig.first.data(), rig.second.data(), 64) == 0);
  CHECK(rig.at(rig.b(64)) == 7);
}

TEST_CASE("a box of gfx12 has its fields elsewhere") {
  constexpr auto g = Generation::v7_0;
  Rig rig{of(g)};
  rig.first.randomise(1);
  put(rig,
      CopySubwindow{.src = rig.a(0), .dst = rig.b(0), .src_pitch = 16, .dst_pitch = 32, .x = 8, .y = 3, .src_x = 4}, g);
  put(rig, Fence{.addr = rig.b(4096), .value = 1}, g);
  rig.go();
  for (std::size_t row = 0; row < 3; ++row)
    CHECK(std::memcmp(rig.first.data() + 16 * row + 4, rig.second.data() + 32 * row, 8) == 0);
}

TEST_CASE("older engines read 22 bits of a copy's length") {
  const std::vector<std::uint32_t> copy{1, 0x40003f, 0, 0x100000, 0, 0x200000, 0};
  Rig old{of(Generation::v4_0)};
  old.first.randomise(1);
  for (const auto w : copy) old.put_dword(w);
  old.go();
  CHECK(std::memcmp(old.first.data(), old.second.data(), 64) == 0);
  // 4.4.2 copies 4M + 64 bytes, which are not mapped.
  Rig now;
  for (const auto w : copy) now.put_dword(w);
  CHECK(now.fails().kind == FaultKind::unmapped);
}

TEST_CASE("a packet of another generation is unknown, and the fault names it") {
  Rig rig;
  put(rig, Gcr{.gl2_writeback = true}, Generation::v6_0);
  const auto f = rig.fails();
  CHECK(f.kind == FaultKind::unknown_packet);
  CHECK(describe(f).find("gcr of 5.0 to 7.0, not of 4.4.2") != std::string::npos);
  Rig later{of(Generation::v6_0)};
  later.put_unchecked(CopySwap{.a = later.a(0), .b = later.b(0), .bytes = 64});
  const auto other = later.fails();
  CHECK(other.kind == FaultKind::unknown_packet);
  CHECK(other.generation == Generation::v6_0);
  CHECK(describe(other).find("copy_swap of 4.4.2 to 4.4.5, not described for 6.0") != std::string::npos);
}
