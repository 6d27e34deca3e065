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

TEST_CASE("what drivers and kfdtest send to gfx11 runs there: WRITE, and fills of more than 4 MiB") {
  constexpr auto g = Generation::v6_0;
  Rig rig{of(g)};
  const std::array<std::uint32_t, 2> data{3, 4};
  put(rig, Write{.dst = rig.b(0), .data = data}, g);
  put(rig, Fence{.addr = rig.b(64), .value = 7}, g);
  rig.go();
  CHECK(rig.at(rig.b(4)) == 4);
  CHECK(rig.at(rig.b(64)) == 7);
  Rig large{of(g)};
  put(large, Fill{.dst = rig.b(64), .data = 7, .bytes = (1 << 22) + 64}, g);
  CHECK(large.fails().kind == FaultKind::unmapped);  // with a length of 22 bits, it would fill 64 bytes
}

TEST_CASE("a copy of gfx12 may have an eighth dword, and what follows it is executed") {
  constexpr auto g = Generation::v7_0;
  Rig rig{of(g)};
  rig.first.randomise(1);
  put(rig, CopyLinear{.src = rig.a(0), .dst = rig.b(0), .bytes = 64, .cpv = true}, g);
  put(rig, Fence{.addr = rig.b(64), .value = 7, .mtype = 3}, g);
  rig.go();
  CHECK(std::memcmp(rig.first.data(), rig.second.data(), 64) == 0);
  CHECK(rig.at(rig.b(64)) == 7);
  Rig compressed{of(g)};
  put(compressed, CopyLinear{.src = rig.a(0), .dst = rig.b(0), .bytes = 64, .cpv = true, .dcc = 1}, g);
  const auto f = compressed.fails();
  CHECK(f.kind == FaultKind::unsupported);
  CHECK(f.field == "dcc");
}

TEST_CASE("a packet that is not described stops the queue, and the fault says so") {
  Rig rig{of(Generation::v6_0)};
  for (const auto w : {0x105u, 0u, 0u, 0u, 0u}) rig.put_dword(w);  // fence_interrupt
  const auto f = rig.fails();
  CHECK(f.kind == FaultKind::unsupported);
  CHECK(describe(f).find("fence_interrupt, not described for 6.0: this device does not support it: its fields are not "
                         "described for this generation") != std::string::npos);
  Rig tiled{of(Generation::v6_0)};
  tiled.put_dword(0x101);
  for (int i = 0; i < 12; ++i) tiled.put_dword(0);
  const auto no = tiled.fails();
  CHECK(no.kind == FaultKind::unsupported);
  CHECK(describe(no).find("copy_tiled: this device does not support it: software does not execute this packet") !=
        std::string::npos);
}

TEST_CASE("a packet of another generation is unknown, and the fault names it") {
  Rig rig;
  put(rig, Gcr{.gl2_writeback = true}, Generation::v6_0);
  const auto f = rig.fails();
  CHECK(f.kind == FaultKind::unknown_packet);
  CHECK(describe(f).find("gcr of 5.0 to 7.1, not of 4.4.2") != std::string::npos);
  Rig later{of(Generation::v6_0)};
  later.put_unchecked(CopySwap{.a = later.a(0), .b = later.b(0), .bytes = 64});
  const auto other = later.fails();
  CHECK(other.kind == FaultKind::unknown_packet);
  CHECK(other.generation == Generation::v6_0);
  CHECK(describe(other).find("copy_swap of 4.4.2 to 4.4.5, 7.1, not of 6.0") != std::string::npos);
}
