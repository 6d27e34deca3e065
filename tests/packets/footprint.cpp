// SPDX-License-Identifier: MIT
// What packets do to memory and to their queue, before they run: regions with their fields, words, what is skipped.
#include "sdma/packets/footprint.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace sdma;

namespace {

/// "src r 0x1000 64": field, access, address and bytes of each region; "* rows" where there are several.
template <class P> std::vector<std::string> regions_of(const P& p) {
  std::vector<std::string> out;
  footprint(p, [&](const Region& r, std::string_view field) {
    const char* access = r.access == Access::read ? " r " : r.access == Access::write ? " w " : " rw ";
    out.push_back(std::string(field) + access + std::to_string(r.va.value) + " " + std::to_string(r.bytes) +
                  (r.rows == 1 ? "" : " * " + std::to_string(r.rows)));
  });
  std::size_t nameless = 0;
  footprint(p, [&](const Region&) { ++nameless; });
  CHECK(nameless == out.size());
  return out;
}
using Regions = std::vector<std::string>;

constexpr GpuVa kA{1000}, kB{2000}, kC{3000};

TEST_CASE("a region has the name of the field that holds its address") {
  CHECK(regions_of(CopyLinear{.src = kA, .dst = kB, .bytes = 64}) == Regions{"src r 1000 64", "dst w 2000 64"});
  CHECK(regions_of(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kC, .bytes = 8}) ==
        Regions{"src r 1000 8", "dst1 w 2000 8", "dst2 w 3000 8"});
  CHECK(regions_of(CopySwap{.a = kA, .b = kB, .bytes = 64}) == Regions{"a rw 1000 64", "b rw 2000 64"});
  CHECK(regions_of(CopyStruct{.table = kA, .linear = kB, .count = 3, .stride = 2}) ==
        Regions{"table w 1000 4 * 3", "linear r 2000 12"});
  CHECK(regions_of(CopyStruct{.table = kA, .linear = kB, .count = 3, .stride = 2, .detile = true}) ==
        Regions{"table r 1000 4 * 3", "linear w 2000 12"});
  CHECK(regions_of(PollVerify{.a = kA, .a_end = kA + 8, .b = kB, .b_end = kB + 16, .record = kC}) ==
        Regions{"a r 1000 8", "b r 2000 16", "record w 3000 4"});
  CHECK(regions_of(FillMulti{.dst = kA}).empty());
  CHECK(regions_of(PteCopy{.src = kA, .dst = kB, .entries = 2}) == Regions{"src r 1000 16", "dst rw 2000 16"});
}

TEST_CASE("physical addresses are a footprint of their own") {
  const CopyPhysical p{.src = kA, .dst = kB, .bytes = 64};
  CHECK(regions_of(p).empty());
  Regions physical;
  physical_footprint(p, [&](const Region& r, std::string_view field) {
    physical.push_back(std::string(field) + " " + std::to_string(r.va.value));
  });
  CHECK(physical == Regions{"src 1000", "dst 2000"});
}

TEST_CASE("packets that order others have one word, and the rest has none") {
  const auto is = [](const Region& w, GpuVa va, std::uint64_t bytes) { return w.va == va && w.bytes == bytes; };
  CHECK(is(word(Fence{.addr = kA}), kA, 4));
  CHECK(is(word(PollMem{.addr = kA}), kA, 4));
  CHECK(is(word(CondExec{.addr = kA}), kA, 4));
  CHECK(is(word(Semaphore{.addr = kA}), kA, 8));
  CHECK(is(word(Timestamp{.addr = kA}), kA, 8));
  CHECK(is(word(Atomic{.addr = kA, .op = AtomicOp::add_32}), kA, 4));
  CHECK(is(word(Atomic{.addr = kA, .op = AtomicOp::add_64}), kA, 8));
  CHECK(is(word(Indirect{.base = kA, .dwords = 16}), kA, 64));
  CHECK(word(Indirect{.base = kA}).bytes == 0);
  CHECK(word(CopyLinear{.src = kA, .dst = kB, .bytes = 64}).bytes == 0);
  CHECK(word(PollReg{.reg = 4}).bytes == 0);
  CHECK(word(PreExec{.dwords = 4}).bytes == 0);
  CHECK(word(Trap{.context = 1}).bytes == 0);
}

TEST_CASE("what may wait, and what conditions skip") {
  CHECK(may_wait(PollMem{}));
  CHECK(may_wait(Semaphore{}));
  CHECK_FALSE(may_wait(Semaphore{.signal = true}));
  CHECK(may_wait(Atomic{.op = AtomicOp::cmpswap_64, .loop = true}));
  CHECK_FALSE(may_wait(Atomic{}));
  CHECK_FALSE(may_wait(CondExec{}));
  CHECK(skipped(CondExec{.dwords = 9}) == 9);
  CHECK(skipped(PreExec{.dwords = 7}) == 7);
  CHECK(skipped(Indirect{.dwords = 8}) == 0);
  CHECK(skipped(Nop{.dwords = 5}) == 0);
}

TEST_CASE("dwords give what their packet gives") {
  const auto cond = encode(CondExec{.addr = kA, .dwords = 9});
  const auto& info = info_of<CondExec>();
  CHECK(role(info, cond) == Role::control);
  CHECK(skipped(info, cond) == 9);
  CHECK(word(info, cond).va == kA);
  std::size_t regions = 0;
  footprint(info, cond, [&](const Region& r) { regions += r.va == kA && r.bytes == 4; });
  CHECK(regions == 1);
}

}  // namespace
