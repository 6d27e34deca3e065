// SPDX-License-Identifier: MIT
// Golden files: NAME.hex are dwords, NAME.packets their text, NAME.json
// their JSON Lines. `ninja -C build bless` writes the latter two.
#include "sdma/stream/json.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sdma;

namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) FAIL("cannot be opened: " << path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}
std::vector<std::uint32_t> dwords(const std::filesystem::path& path) {
  std::vector<std::uint32_t> out;
  std::istringstream lines(slurp(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::uint32_t w; words >> std::hex >> w;) out.push_back(w);
  }
  return out;
}

}  // namespace

TEST_CASE("dwords, text and JSON of the golden files agree, both ways") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SDMA_SOURCE_ROOT "/tests/stream/golden")) {
    if (entry.path().extension() != ".hex") continue;
    ++files;
    CAPTURE(entry.path());
    const auto d = dwords(entry.path());
    REQUIRE(!d.empty());
    auto path = entry.path();
    const auto text = slurp(path.replace_extension(".packets")), json = slurp(path.replace_extension(".json"));
    CHECK(disassemble(d, {.offsets = true, .raw = true}) == text);
    CHECK(to_json_lines(d) == json);
    const auto from_text = assemble(text), from_json = from_json_lines(json);
    REQUIRE(from_text);
    REQUIRE(from_json);
    CHECK(*from_text == d);
    CHECK(*from_json == d);
  }
  CHECK(files >= 2);
}
