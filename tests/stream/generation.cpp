// SPDX-License-Identifier: MIT
// Text, JSON and rules of packets of other generations.
#include "sdma/stream/json.hpp"
#include "sdma/stream/rules.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

using Words = std::vector<std::uint32_t>;

std::string text(const Words& d, Generation g = kDefaultGeneration) { return disassemble(d, {.generation = g}); }
Words words(const std::string& text, Generation g) {
  auto r = assemble(text, "t", {.generation = g});
  if (!r) FAIL(to_string(r.error()[0]));
  return *std::move(r);
}
std::string error(const std::string& text, Generation g = kDefaultGeneration) {
  const auto r = assemble(text, "t", {.generation = g});
  REQUIRE_FALSE(r);
  return r.error()[0].message;
}
std::string rule(const Words& d, Generation g) {
  const auto found = check_stream(d, {.generation = g});
  return found.empty() ? "" : found[0].rule + ": " + found[0].message;
}

const Words kFused{0x80000001, 0, 0, 0x1000, 0, 0x2000, 0, 8, 9, 10, 11, 12};
const Words kGcr{0x111, 0, 0xc3c00000, 0, 0};

}  // namespace

TEST_CASE("a packet of another generation is a line of dwords with its name, and the next packet is read") {
  auto d = kFused;
  d.insert(d.end(), {6, 5});
  CHECK(text(d) ==
        ".dword 0x80000001 0x00000000 0x00000000 0x00001000 0x00000000 0x00002000 0x00000000 0x00000008 0x00000009 "
        "0x0000000a 0x0000000b 0x0000000c  # copy_linear_signal of 7.1, not of 4.4.2\ntrap context=5\n");
  CHECK(words(text(d), kDefaultGeneration) == d);
  CHECK(text(kGcr) ==
        ".dword 0x00000111 0x00000000 0xc3c00000 0x00000000 0x00000000  # gcr of 5.0 to 7.1, not of 4.4.2\n");
  CHECK(text({0x111, 0}) == ".dword 0x00000111  # truncated gcr of 5.0 to 7.1, not of 4.4.2\n.dword 0x00000000\n");
}

TEST_CASE("text of other generations, and back") {
  const auto same = [](const Words& d, Generation g, const std::string& line) {
    CHECK(text(d, g) == line + "\n");
    CHECK(words(line, g) == d);
  };
  same(kGcr, Generation::v6_0,
       "gcr gl2_writeback gl2_invalidate gl1_invalidate glv_invalidate glk_invalidate glk_writeback");
  same({0x30005, 0x1000, 0, 7}, Generation::v6_0, "fence addr=0x1000 value=7 mtype=3");
  same({0x30005, 0x1000, 0, 7}, Generation::v4_4_2, "fence addr=0x1000 value=7 dw0|=0x30000");
  same({1, 0x3fffff, 0, 0x1000, 0, 0x2000, 0}, Generation::v4_0, "copy_linear bytes=4M src=0x1000 dst=0x2000");
  same({1, 0x400fff, 0, 0x1000, 0, 0x2000, 0}, Generation::v4_0,
       "copy_linear bytes=4K src=0x1000 dst=0x2000 dw1|=0x400000");
  same({32, 5}, Generation::v6_0, "dummy_trap context=5");
  same({0x20c, 0x1000, 0, 1, 0, 2, 0, 3}, Generation::v4_4_2, "pte_modify addr=0x1000 mask=0x1 value=0x2 entries=3");
  same({0x20c, 0x1000, 0, 1, 0, 2, 0}, Generation::v4_4_2_header, "pte_modify addr=0x1000 mask=0x1 value=0x2");
  CHECK(error("gcr gl2_writeback") == "this is gcr of 5.0 to 7.1, not of 4.4.2");
  CHECK(error("copy_linear bytes=4M+1 src=0 dst=0", Generation::v4_0) == "'bytes' must be from 1 to 4M, got 4194305");
  CHECK(error("fence addr=0x1000 value=7 mtype=3") == "fence has no field 'mtype'");
  CHECK(error("copy_swap bytes=64 a=0 b=64", Generation::v4_4) ==
        "this is copy_swap of 4.4.2 to 4.4.5, 7.1, not of 4.4");
}

TEST_CASE("JSON of other generations") {
  CHECK(to_json_lines(kGcr) ==
        R"({"offset":0,"packet":null,"foreign":"gcr of 5.0 to 7.1, not of 4.4.2","dwords":["0x00000111","0x00000000",)"
        R"("0xc3c00000","0x00000000","0x00000000"]})"
        "\n");
  CHECK(to_json_lines(kGcr, 0, Generation::v6_0)
            .starts_with(R"({"offset":0,"packet":"gcr","fields":{"gl2_writeback":true,)"));
  CHECK(to_json_lines(Words{5, 0, 0, 0}, 0, Generation::v6_0).find("\"mtype\":0") != std::string::npos);
  CHECK(to_json_lines(Words{5, 0, 0, 0}).find("mtype") == std::string::npos);
}

TEST_CASE("rules of other generations") {
  CHECK(rule(kGcr, Generation::v4_4_2) == "unknown-packet: this is gcr of 5.0 to 7.1, not of 4.4.2");
  CHECK(rule(kGcr, Generation::v6_0) == "");
  CHECK(rule({0x30005, 0x1000, 0, 7}, Generation::v6_0) == "");
  CHECK(rule({0x30005, 0x1000, 0, 7}, Generation::v4_4_2) ==
        "reserved-bits: fence sets reserved bits 0x30000 of dword 0");
  // A row of 3 bytes: the rule decodes the packet where 7.0 has its fields.
  const auto box =
      words("copy_subwindow element_log2=0 src=0 src_pitch=3 dst=0x1000 dst_pitch=8 x=2 y=2\nfence addr=0x9000 value=1",
            Generation::v7_0);
  CHECK(rule(box, Generation::v7_0).starts_with("subwindow-pitch"));
  const auto good =
      words("copy_subwindow element_log2=0 src=0 src_pitch=4 dst=0x1000 dst_pitch=8 x=2 y=2\nfence addr=0x9000 value=1",
            Generation::v7_0);
  CHECK(rule(good, Generation::v7_0) == "");
}
