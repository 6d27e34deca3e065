// SPDX-License-Identifier: MIT
#include "../../lib/core/file_texts.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

using namespace sdma::detail;

namespace {

constexpr std::string_view kText = R"(# A remark.
[gpu]
vendor = 0x1002
# Another.
uevent
  MAJOR=226
  MINOR={minor:04x}

empty
holders/
/sys/{slot} -> /sys/bus/{slot}/

[other gpu]
name = {name} = {name}
)";

std::vector<FileText> filled(std::string_view section, const FileValues& values) {
  std::vector<FileText> all;
  FileTexts(kText).fill(section, values, [&](FileText f) { all.push_back(std::move(f)); });
  return all;
}

}  // namespace

TEST_CASE("each form of a file, with values") {
  const auto all = filled("gpu", FileValues()("minor", 128u)("slot", "10:00")("unused", 1));
  const FileText expected[] = {{FileText::Kind::file, "vendor", "0x1002\n"},
                               {FileText::Kind::file, "uevent", "MAJOR=226\nMINOR=0080\n"},
                               {FileText::Kind::file, "empty", ""},
                               {FileText::Kind::directory, "holders", ""},
                               {FileText::Kind::link, "/sys/10:00", "/sys/bus/10:00/"}};
  REQUIRE(all.size() == std::size(expected));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].kind == expected[i].kind);
    CHECK(all[i].path == expected[i].path);
    CHECK(all[i].text == expected[i].text);
  }
}

TEST_CASE("a value is copied, and is no text to fill in") {
  FileValues values;
  {
    const std::string name = "{braces}, which are longer than any short string";
    values("name", name);
  }
  const auto all = filled("other gpu", values);
  REQUIRE(all.size() == 1);
  CHECK(all[0].path == "name");
  CHECK(all[0].text ==
        "{braces}, which are longer than any short string = {braces}, which are longer than any short string\n");
}

TEST_CASE("a mistake in a text is no silent default") {
  CHECK_THROWS_AS(filled("no such section", FileValues()), std::invalid_argument);
  CHECK_THROWS_AS(filled("gpu", FileValues()("minor", 128u)), fmt::format_error);
}
