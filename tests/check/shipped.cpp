// SPDX-License-Identifier: MIT
// What is shipped is right, and what is wrong on purpose is found: examples, and the collectives as they are printed.
#include "sdma/check/check.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sdma;

namespace {

void check_folder(const std::string& folder, std::size_t least, const std::vector<ParseOptions::Setting>& set = {}) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SDMA_SOURCE_ROOT "/" + folder)) {
    if (entry.path().extension() != ".sdma") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    // A file takes the settings that it has a param for.
    ParseOptions options;
    for (const auto& s : set)
      if (text.str().find("\nparam " + s.name + " ") != std::string::npos) options.set.push_back(s);
    SourceMap map;
    options.map = &map;
    const auto s = parse_schedule(text.str(), entry.path().filename().string(), options);
    INFO(entry.path());
    REQUIRE(s);
    const auto report = check(*s, {.map = &map});
    for (const auto& f : report.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(as_expected(*s, report));
    // What is left open is the only thing that is not proved.
    if (!expects_finding(*s)) CHECK(report.findings.size() == (map.choices > 0));
    if (map.choices > 0) CHECK(report.findings.front().diagnostic.rule == "not-all-choices");
    ++n;
  }
  CHECK(n >= least);
}

}  // namespace

TEST_CASE("examples are proved, or have the finding that they expect") {
  check_folder("share/sdma/collectives", 4);
  check_folder("share/sdma/overlap", 1);
  check_folder("examples/schedules", 8);
  check_folder("share/published/dma-latte", 4);
  check_folder("share/published/dma-latte", 4, {{"prelaunch", "1"}});
  check_folder("share/published/copies", 3);
  check_folder("share/published/copies", 3, {{"to_host", "0"}, {"broadcast", "1"}});
  check_folder("share/published/mori", 3, {{"count", "3"}, {"signal", "1"}});
  for (const auto n : {"2", "3", "5", "8"}) check_folder("examples/schedules", 8, {{"N", n}});
}

TEST_CASE("no report on a collective") { check_folder("tests/collectives/golden", 10); }

TEST_CASE("the published batch of copies can be simulated: only its calls have a finding") {
  std::ifstream file(SDMA_SOURCE_ROOT "/share/published/copies/blocks.sdma");
  std::stringstream text;
  text << file.rdbuf();
  for (const auto* batch : {"0", "1"}) {
    ParseOptions options;
    options.set.push_back({"batch", batch});
    const auto s = parse_schedule(text.str(), "blocks.sdma", options);
    REQUIRE(s);
    CHECK(expects_finding(*s) == (std::string(batch) == "0"));
  }
}
