// SPDX-License-Identifier: MIT
#include "sdma/stream/text.hpp"

#include "random.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

using namespace sdma;

namespace {

std::string line(std::vector<std::uint32_t> d) { return to_text(Reader{d}.next()); }

std::vector<std::uint32_t> words(const std::string& text) {
  auto r = assemble(text, "t");
  if (!r) {
    for (const auto& e : r.error()) UNSCOPED_INFO(to_string(e));
    FAIL("does not assemble: " << text);
  }
  return *std::move(r);
}
using Words = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("the packets that other people's code encodes read as the language has them") {
  CHECK(line({0x00000001, 0xfff, 0, 0x22334000, 0x7f11, 0x66778000, 0x7f55}) ==
        "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000");
  CHECK(line({1, 0x3fffffff, 0, 0x22334000, 0x7f11, 0x66778000, 0x7f55}) ==
        "copy_linear bytes=1G src=0x7f1122334000 dst=0x7f5566778000");
  CHECK(line({1, 0xfff, 0x400000, 0x22334000, 0x7f11, 0x66778000, 0x7f55}) ==
        "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000 dw2|=0x400000");
  CHECK(line({0x08000001, 0xffff, 0, 0x22334000, 0x7f11, 0x66778000, 0x7f55, 0xaabbc000, 0x7f99}) ==
        "copy_broadcast bytes=64K src=0x7f1122334000 dst1=0x7f5566778000 dst2=0x7f99aabbc000");
  CHECK(line({0x901, 0xfff, 0, 0x22334000, 0x7f11, 0x66778000, 0x7f55}) ==
        "copy_swap bytes=4K a=0x7f1122334000 b=0x7f5566778000");
  CHECK(line({2, 0x66778000, 0x7f55, 1, 0x11223344, 0x55667788}) ==
        "write dst=0x7f5566778000 data=[0x11223344 0x55667788]");
  CHECK(line({5, 0x1008, 0x7f00, 0xdeadbeef}) == "fence addr=0x7f0000001008 value=0xdeadbeef");
  CHECK(line({6, 0x123}) == "trap context=291");
  CHECK(line({0xb0000008, 0x1008, 0x7f00, 0, 0xffffffff, 0x0fff0004}) ==
        "poll_mem addr=0x7f0000001008 func=eq reference=0");
  CHECK(line({8, 0, 0x80000000, 0, 0, 0}) == "hdp_flush");
  CHECK(line({0x5e00000a, 0x1008, 0x7f00, 0xffffffff, 0xffffffff, 0, 0, 0}) ==
        "atomic op=add_rtn_64 addr=0x7f0000001008 value=-1");
  CHECK(line({0x8000000b, 0x66778000, 0x7f55, 0xa5a5a5a5, 0xffc}) ==
        "fill dst=0x7f5566778000 data=0xa5a5a5a5 bytes=4093 unit=dword");
  CHECK(line({0x8000000b, 0x66778000, 0x7f55, 0xa5a5a5a5, 0xfff}) ==
        "fill dst=0x7f5566778000 data=0xa5a5a5a5 bytes=4K unit=dword");
  CHECK(line({0x0000020d, 0x1020, 0x7f00}) == "timestamp addr=0x7f0000001020");
  CHECK(line({4, 0x22334000, 0x7f11, 0x40, 0, 0}) == "indirect base=0x7f1122334000 dwords=64");
}

TEST_CASE("values print as what they mean") {
  CHECK(line({0xf0000008, 0, 0, 4095, 0xff, 0x00070005}) ==
        "poll_mem addr=0x0 func=7 reference=4095 mask=0xff interval=5 retry=7");
  CHECK(line({5, 0, 0, 4096}) == "fence addr=0x0 value=0x1000");
  CHECK(line({5, 0, 0, 0u - 4095}) == "fence addr=0x0 value=-4095");
  CHECK(line({5, 0, 0, 0u - 4096}) == "fence addr=0x0 value=0xfffff000");
  CHECK(line({0x5e00000a, 0, 0, 0xffffffff, 0, 0, 0, 0}) == "atomic op=add_rtn_64 addr=0x0 value=0xffffffff");
  CHECK(line({0xfe01000a, 0, 0, 0, 0, 0, 0, 0}) == "atomic op=127 addr=0x0 value=0 loop");
  CHECK(line({1, 0x3ff, 0, 0, 0, 0, 0}) == "copy_linear bytes=1K src=0x0 dst=0x0");
  CHECK(line({1, 0x2ffffff, 0, 0, 0, 0, 0}) == "copy_linear bytes=48M src=0x0 dst=0x0");
}

TEST_CASE("padding, payloads and what nobody knows") {
  CHECK(line({0}) == "nop");
  CHECK(line({0x00020000, 0, 0}) == "nop dwords=3");
  CHECK(line({0x00030000, 0xdead, 0xdead, 0xdead}) == "nop payload=[0xdead 0xdead 0xdead]");
  CHECK(line({0x00050000, 0, 7, 7, 7, 7}) == "nop payload=[0x0 0x7*4]");
  CHECK(line({0x40000000}) == "nop dw0|=0x40000000");
  CHECK(line({3}) == ".dword 0x00000003");
  CHECK(line({1, 2}) == ".dword 0x00000001  # truncated copy_linear\n.dword 0x00000002");
  Words tiled(13, 9);
  tiled[0] = 0x101;
  std::string expected = ".dword 0x00000101";
  for (int i = 0; i < 12; ++i) expected += " 0x00000009";
  CHECK(line(tiled) == expected + "  # copy_tiled, not described for 4.4.2");
}

TEST_CASE("runs of one-dword packets are folded from four on") {
  CHECK(disassemble(Words(3, 0)) == "nop\nnop\nnop\n");
  CHECK(disassemble(Words(4096, 0)) == "nop times=4096\n");
  CHECK(disassemble(Words(4, 3)) == ".dword 0x00000003 times=4\n");
  CHECK(disassemble(Words{0, 0, 0, 0, 3, 3}) == "nop times=4\n.dword 0x00000003\n.dword 0x00000003\n");
}

TEST_CASE("offsets and raw dwords are comments") {
  const Words d{0, 0, 0, 0, 5, 0x1008, 0x7f00, 1};
  CHECK(disassemble(d, {.offsets = true, .raw = true}) ==
        "nop times=4  # 0x0000: 00000000\n"
        "fence addr=0x7f0000001008 value=1  # 0x0010: 00000005 00001008 00007f00 00000001\n");
  CHECK(disassemble(d, {.offsets = true, .base = 0x12340}) ==
        "nop times=4  # 0x12340\nfence addr=0x7f0000001008 value=1  # 0x12350\n");
  CHECK(disassemble(d, {.raw = true}).ends_with("value=1  # 00000005 00001008 00007f00 00000001\n"));
  CHECK(words(disassemble(d, {.offsets = true, .raw = true})) == d);
}

TEST_CASE("as(dis(x)) == x") {
  std::size_t dwords = 0;
  for (std::uint64_t seed = 0; seed < test::tries(std::uint64_t{1500}); ++seed) {
    support::Dwords random{seed};
    const auto x = random.stream(200);
    dwords += x.size();
    const auto text = disassemble(x, {.offsets = seed % 2 == 0, .raw = seed % 3 == 0});
    const auto back = assemble(text);
    if (!back) FAIL("seed " << seed << ": " << to_string(back.error()[0]));
    if (*back != x) FAIL("seed " << seed);
  }
  CHECK(dwords > test::tries(std::size_t{2'000'000}));
}

TEST_CASE("a stream in pieces reads like the stream in one") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    support::Dwords random{seed};
    const auto x = random.stream(100);
    std::string text;
    Disassembler d;
    Words kept;
    for (std::size_t at = 0; at < x.size();) {
      const auto n = std::min<std::size_t>(1 + random.number() % 30, x.size() - at);
      kept.insert(kept.end(), x.begin() + static_cast<std::ptrdiff_t>(at),
                  x.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      const auto used = d.append(text, kept, at == x.size());
      kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(used));
    }
    CHECK(text == disassemble(x));
  }
}
