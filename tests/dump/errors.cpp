// SPDX-License-Identifier: MIT
// What may be data is never dropped: a line that does not fit, a gap, a form that two readings share.
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

Diagnostic error_of(std::string_view text) {
  CAPTURE(text);
  const auto r = read_text_dump(text, "t");
  REQUIRE_FALSE(r);
  return r.error();
}

}  // namespace

TEST_CASE("a gap in the offsets is an error") {
  const auto d = error_of("00000000: 00000005 00001008\n00000010: 00007f00 00000001\n");
  CHECK(d.where == "t:2:1");
  CHECK(d.message == "this offset is 16 more than the previous one, but 8 bytes lie between them");
}

TEST_CASE("a line of the dump with a word in it is an error, not text") {
  CHECK(error_of("00000000: 00000005 00001008 00007f00 1234567z\n00000010: 00000000 00000000 00000000 00000000\n")
            .message == "'1234567z' is not a dword");
  CHECK(error_of("00000005 00001008 zz\n00007f00 00000001\n").message == "'zz' is not a dword");
  CHECK(error_of("00000000: 00000005 zz 00007f00 00000001\n00000010: 00000000 00000000 00000000 00000000\n").message ==
        "'zz' is not a dword");
}

TEST_CASE("a number of another width is an error") {
  const auto d = error_of(
      "00000000: 00000005 00001008\n00000008: 00007f00 00000001\n00000010: 5 00000000\n00000018: 00000000 00000000\n"
      "00000020: 00000000 00000000\n00000028: 00000000 00000000\n00000030: 00000000 00000000\n");
  CHECK(d.where == "t:3:11");
}

TEST_CASE("a form that two readings share is an error that says which") {
  CHECK(error_of("0500 0000 0810 0000\n").message == "groups of 4 digits may be in either order");
  CHECK(error_of("05\n00\n00\n00\n").message == "'05' may be a byte or a dword");
  CHECK(error_of("0x10, 0x20, 0x30, 0x40\n").message == "0x with two digits may be a byte or a dword");
  CHECK(error_of("0x1010 0x2020\n0x3030 0x4040\n").message == "0x with four digits may be 16 bits or a dword");
  CHECK(error_of("00007f1122334000\n").message == "16 digits may be one number of 64 bits or 8 bytes in order");
  CHECK(error_of("00000000: 0d000000  ....\n").message.empty() == false);
  // The same digits in another radix.
  const auto decimal = "these numbers may be decimal or hexadecimal";
  CHECK(error_of("[5, 8192, 32512, 6, 1, 4095, 0]\n").message == decimal);
  CHECK(error_of("0000000           5        8192       32512           6\n"
                 "0000020           1        4095           0           0\n")
            .message == decimal);
  CHECK(error_of("0000000 000005 000000 020000 000000 077400 000000 000006 000000\n").message ==
        "numbers of 6 digits may be octal, as od prints them without -t");
  CHECK(error_of("0000000 005 000 000 000 000 040 000 000\n").message ==
        "numbers of 3 digits may be octal, as od prints them without -t");
}

TEST_CASE("text without dwords is not a dump") {
  CHECK(error_of("hello world\n").message == "'hello' is not a dword");
  CHECK(error_of("copy_linear bytes=4K\n").hint == "sdma as turns packet lines into dwords: sdma as FILE | sdma check");
  const auto empty = read_text_dump("# nothing\n\n", "t");
  REQUIRE(empty);
  CHECK(empty->dumps[0].dwords.empty());
}

TEST_CASE("repeats need an offset, and are bounded") {
  CHECK(error_of("00000000\n*\n").where == "t:2:1");
  CHECK(error_of("00000010: 0 1 2 3\n*\n00000000: 0 1 2 3\n").message ==
        "this offset does not say how often the preceding '*' repeats");
  CHECK(error_of("00000000: 00000001\n*\n00000010: 00000001\n*\n40000020: 00000001\n").message ==
        "the '*' before this offset repeats 1073741836 bytes, but all '*' of a text can repeat only 1G");
}
