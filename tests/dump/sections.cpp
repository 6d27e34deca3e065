// SPDX-License-Identifier: MIT
// Texts with several parts: devcoredumps with indirect buffers, umr's prints of several rings, and what is refused.
#include "sdma/dump/place.hpp"
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;

namespace {

std::string coredump(std::string_view size = "4") {
  return "**** AMDGPU Device Coredump ****\nkernel: 6.12.9\n\nRing buffer information\nring name: comp_1.0.0\n"
         "Rptr: 0x0 Wptr: 0x0 RB mask: 1\nRing size in dwords: 2\nRing contents\nOffset \t Value\n0x0 \t 0x1\n0x4 \t 0x2\n"
         "ring name: sdma0.0\nRptr: 0x1 Wptr: 0x3 RB mask: 3\nRing size in dwords: " +
         std::string(size) +
         "\nRing contents\nOffset \t Value\n0x0 \t 0x5\n0x4 \t 0x3000\n0x8 \t 0x7f00\n0xc \t 0x6\n"
         "VRAM is lost due to GPU reset!\n\nIB #0 0x7f1200000000 3 dw\n0x00000005\n0x00001000\n0x00007f00\n\n"
         "IB #1 0x7f1200010000 1 dw\n0x00000009\n";
}

std::string umr(std::string_view name, int dwords, bool positions) {
  std::string all;
  if (positions) all.append("\n").append(name).append(".rptr == 1\n").append(name).append(".wptr == 2\n");
  for (int i = 0; i < dwords; ++i)
    all.append(name)
        .append(".ring[ ")
        .append(std::to_string(i))
        .append("] == 0x0000000")
        .append(std::to_string(i))
        .append("    ...\n");
  return all;
}

std::string message_of(std::string_view text) {
  const auto d = read_text_dump(text, "f");
  return d ? "read" : d.error().where + ": " + d.error().message;
}

}  // namespace

TEST_CASE("a devcoredump has rings, and the indirect buffers of the job that hung") {
  const auto all = read_text_dump(coredump(), "f");
  REQUIRE(all);
  REQUIRE(all->dumps.size() == 1);
  CHECK(all->dumps[0].ring == "sdma0.0");
  CHECK(all->dumps[0].dwords == std::vector<std::uint32_t>{5, 0x3000, 0x7f00, 6});
  CHECK((all->dumps[0].rptr == 4 && all->dumps[0].wptr == 12));
  REQUIRE(all->buffers.size() == 2);
  CHECK(all->buffers[0].va == 0x7f1200000000);
  CHECK(all->buffers[0].dwords == std::vector<std::uint32_t>{5, 0x1000, 0x7f00});
  CHECK(all->buffers[1].dwords == std::vector<std::uint32_t>{9});
}

TEST_CASE("a devcoredump that was cut off is an error, wherever it was cut") {
  CHECK(message_of(coredump("256")) == "f:17:1: ring sdma0.0 has 4 dwords here, and says that it has 256");
  const auto whole = coredump();
  const auto buffers = whole.find("0x00001000");
  CHECK(message_of(whole.substr(0, buffers)) == "f:25:1: the indirect buffer of line 23 ends here, 2 dwords short");
  CHECK(message_of(whole.substr(0, whole.find("0x8 \t"))) ==
        "f:17:1: ring sdma0.0 has 2 dwords here, and says that it has 4");
}

TEST_CASE("what a container's log puts before each line is not part of it") {
  std::string text;
  const auto plain = coredump();
  for (std::size_t begin = 0; begin < plain.size();) {
    const auto end = plain.find('\n', begin);
    text += "2026-11-25T03:14:07.000000001Z stdout F " + plain.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  const auto all = read_text_dump(text, "f");
  REQUIRE(all);
  CHECK(all->dumps[0].dwords == read_text_dump(plain, "f")->dumps[0].dwords);
  CHECK(all->buffers.size() == 2);
}

TEST_CASE("umr's prints of several rings are several dumps") {
  for (const bool positions : {true, false}) {
    CAPTURE(positions);
    const auto all = read_text_dump(umr("gfx942.sdma0", 3, positions) + umr("gfx942.sdma1", 4, positions), "f");
    REQUIRE(all);
    REQUIRE(all->dumps.size() == 2);
    CHECK(all->dumps[0].dwords.size() == 3);
    CHECK(all->dumps[1].dwords.size() == 4);
    if (!positions) continue;
    CHECK((all->dumps[0].ring == "sdma0" && all->dumps[1].ring == "sdma1"));
    for (const auto& d : all->dumps) CHECK((d.rptr == 4 && d.wptr == 8));
  }
  // One ring that was printed twice is two looks at it, and not a ring of twice the size.
  const auto twice = read_text_dump(umr("gfx942.sdma0", 3, true) + umr("gfx942.sdma0", 3, true), "f");
  REQUIRE(twice);
  CHECK(twice->dumps.size() == 2);
  CHECK(read_text_dump(umr("gfx942.sdma0", 3, true), "f")->dumps.size() == 1);
}

TEST_CASE("umr's decoded stream is refused by name") {
  CHECK(message_of("Decoding IB at 0x0@0x54 from 0x0@0x0 of 4 words (type 3)\n"
                   "[0x0@0x00000054 + 0x0000]\tOpcode 0x5/0x0 [FENCE] (4 words, type: 0, hdr: 0x5)\n") ==
        "f:1:1: this is a stream that umr has decoded: it has the fields of packets, and not all of their bits");
}

TEST_CASE("a log of the kernel has no dwords, whatever hexadecimal numbers stand in it") {
  const std::string fault =
      "amdgpu 0000:ab:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:1)\n"
      "amdgpu 0000:ab:00.0: amdgpu:   in page starting at address 0x00007f3555c00000 from client 18\n"
      "amdgpu 0000:ab:00.0: amdgpu: \t MORE_FAULTS: 0x1\namdgpu 0000:ab:00.0: amdgpu: \t RW: 0x1\n";
  CHECK(message_of(fault) == "f: this is a kernel's log of 4 lines, and no dump of a ring");
  CHECK(read_text_dump(fault, "f").error().rule == kLogWithoutDump);
  // A dump in the same text is read, without the lines of the log.
  const auto both = read_text_dump("0x00000005 0x00001008\n0x00007f00 0x00000001\n" + fault, "f");
  REQUIRE(both);
  CHECK(both->dumps[0].dwords == std::vector<std::uint32_t>{5, 0x1008, 0x7f00, 1});
}

TEST_CASE("a printed offset is a position, if the positions lie among the dwords") {
  CHECK(first_position(0x40, 16, 0x54, 0x60) == 0x40);
  CHECK(first_position(0x40, 16, 0x40, 0x80) == 0x40);
  CHECK(first_position(0x40, 16, 0x54, 0x84) == 0);
  CHECK(first_position(0x40, 16, 0x30, 0x60) == 0);
  CHECK(first_position(0x7f0000000000, 16, 0x10, 0x20) == 0);
  CHECK(first_position(0x40, 16, 0x54, {}) == 0);
}
