// SPDX-License-Identifier: MIT
// Every recipe of docs/recipes.md is formatted, proved, and right on engines as weakly ordered as hardware may be.
#include "sdma/check/check.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/schedule/text.hpp"

#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using namespace sdma;

namespace {

struct Recipe {
  std::string title{}, text{};
};
struct Page {
  std::vector<Recipe> recipes{};
  std::map<std::string, std::string> files{};  ///< those whose first line is a comment with their name
};

Page page() {
  std::ifstream in(std::filesystem::path(SDMA_SOURCE_ROOT) / "docs/recipes.md");
  REQUIRE(in);
  Page p;
  std::string title, fence;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) title = line.substr(3);
    if (line != "```") {
      if (inside) fence += line + "\n";
      continue;
    }
    if (inside && is_schedule(fence)) p.recipes.push_back({title, fence});
    else if (inside) p.files[fence.substr(2, fence.find('\n') - 2)] = fence;
    inside = !inside;
    fence.clear();
  }
  return p;
}

}  // namespace

TEST_CASE("the recipes of the page") {
  const auto p = page();
  CHECK(p.recipes.size() == 25);
  for (const auto& r : p.recipes) {
    INFO(r.title);
    CHECK(format_source(r.text) == r.text);
    const auto s = parse_schedule(
        r.text, "recipe",
        {.read = [&](const std::string& name) -> Result<std::string, Diagnostic> { return p.files.at(name); }});
    REQUIRE(s);
    std::string expected;
    for (const auto& e : s->expectations)
      if (e.kind == Schedule::Expectation::Kind::finding) expected = e.rule;
    const auto judged = check(*s);
    CHECK(judged.proved() == expected.empty());
    for (const auto& f : judged.findings) {
      INFO(to_string(f.diagnostic));
      CHECK(f.diagnostic.rule == expected);
    }
    if (!expected.empty()) continue;
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const auto device = SoftDevice::open({.gpus = s->gpus, .ordering = Ordering::adversarial, .seed = seed});
      REQUIRE(device);
      auto bound = bind(*s, **device);
      REQUIRE(bound);
      const auto report = run(*bound);
      for (const auto& f : report.findings) UNSCOPED_INFO(to_string(f));
      CHECK(report);
    }
  }
}
