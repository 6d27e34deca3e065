// SPDX-License-Identifier: MIT
#include "../../lib/core/words.hpp"

#include "support/catch.hpp"

#include <cstdint>

using namespace sdma::detail;

TEST_CASE("lines are taken with or without an end of the last one") {
  std::string_view text = "one\r\n\ntwo";
  CHECK(take_line(text) == "one\r");
  CHECK(take_line(text).empty());
  CHECK(take_line(text) == "two");
  CHECK(text.empty());
}

TEST_CASE("words are taken with the blanks before them") {
  std::string_view line = " \tfirst second\r";
  CHECK(take_word(line) == "first");
  CHECK(take_word(line) == "second");
  CHECK(take_word(line).empty());
  CHECK(line.empty());
}

TEST_CASE("the blanks at both ends are trimmed") {
  CHECK(trimmed(" \t a b\t\r") == "a b");
  CHECK(trimmed(" \r").empty());
  CHECK(trimmed("").empty());
}

TEST_CASE("a whole number has no mark, and nothing before or after it") {
  CHECK(whole_number<std::uint32_t>("4294967295") == 4294967295u);
  CHECK(whole_number<std::uint64_t>("7f5c", 16) == 0x7f5cu);
  CHECK(whole_number<std::int64_t>("-3") == -3);
  for (const auto* wrong : {"", "4294967296", "12 ", " 12", "+1", "-1", "0x10"})
    CHECK_FALSE(whole_number<std::uint32_t>(wrong));
}
