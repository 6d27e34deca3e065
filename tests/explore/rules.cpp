// SPDX-License-Identifier: MIT
// The explorer's own tests: the ordering rules one by one, and the reduced search against the whole one.
#include "cases.hpp"
#include "early.hpp"
#include "expect.hpp"
#include "generate.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <sstream>

using namespace sdma;
using namespace sdma::explore;

TEST_CASE("executions follow the ordering rules") {
  for (const auto& c : kCases) {
    INFO(c.rule << " " << c.options << "\n" << c.text);
    const auto s = parse_schedule(c.text);
    REQUIRE(s);
    ExploreOptions o{.trace = true};
    std::istringstream options(c.options);
    for (std::string option; options >> option;) REQUIRE(o.profile.set(option));
    for (const bool reduce : {true, false}) {
      o.reduce = reduce;
      const auto found = explore::explore(*s, o);
      INFO("reduced: " << reduce << "\n" << found.text);
      CHECK(std::string(name(found.verdict)) == name(c.verdict));
      CHECK(found.complete);
      CHECK(found.broken() != found.text.empty());
    }
  }
}

TEST_CASE("an early wait is found, and only that") {
  const auto early = [](const char* wait, const char* agent, std::size_t states = 20000) {
    const auto s = parse_schedule(R"(sdma 1
gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p engine=2
  nop
  fence addr=host.x value=1
  poll_mem addr=host.x func=ge reference=1
  fence addr=host.y value=epoch
end
host main
  repeat 2
    submit gpu0.p
    wait host.y >= epoch
  end
end)");
    REQUIRE(s);
    // The fence of x is at 4, the poll at 20.
    CheckFinding f;
    f.locations = {{.agent = "gpu0.p", .offset = 4, .epoch = 2},
                   {.agent = agent, .offset = 20, .epoch = 2, .text = wait}};
    return passes_early(*s, f, {.max_states = states});
  };
  CHECK(early("", "gpu0.p") == true);
  CHECK(early("wait host.y >= 2", "host main") == false);
  CHECK(early("wait host.y >= 1", "host main") == true);
  // Nothing is known about a search that is cut off, or about a place that does not exist.
  CHECK_FALSE(early("wait host.y >= 2", "host main", 2).has_value());
  CHECK_FALSE(early("wait host.y >= 3", "host main").has_value());
  CHECK_FALSE(early("", "gpu0.q").has_value());
}

TEST_CASE("a limit on states leaves the search incomplete") {
  Random r{1};
  const auto g = generate(r, "barrier", 0);
  const auto o = explore::explore(g.schedule, {.max_states = 3});
  CHECK_FALSE(o.complete);
  CHECK_FALSE(o.spotless());
}

TEST_CASE("the reduced search finds what the whole one finds") {
  struct {
    const char* option;
    std::uint64_t seed;
  } const profiles[] = {{"", 1}, {"fence=full", 2}, {"fences=unordered", 3}, {"poll=full", 4}, {"copies=inorder", 5}};
  std::size_t broken = 0, clean = 0, fewer = 0;
  for (const auto& p : profiles)
    for (std::uint64_t i = 0; i < 200; ++i) {
      Random r{1000 * p.seed + i};
      const auto g = generate(r, "", 2);
      if (!problems(g.schedule).empty()) continue;
      ExploreOptions o{.max_states = 3000};
      if (*p.option) REQUIRE(o.profile.set(p.option));
      const auto reduced = explore::explore(g.schedule, o);
      o.reduce = false;
      o.max_states *= 20;
      const auto whole = explore::explore(g.schedule, o);
      if (!reduced.complete || !whole.complete) continue;
      INFO(p.option << " seed " << 1000 * p.seed + i << "\n" << to_text(g.schedule));
      CHECK(reduced.broken() == whole.broken());
      (whole.broken() ? broken : clean) += 1;
      fewer += reduced.states < whole.states;
    }
  CHECK(broken > 200);
  CHECK(clean > 200);
  CHECK(fewer > 200);
}

TEST_CASE("the reduced search finds the ends that break an expectation") {
  std::size_t unmet = 0, met = 0;
  for (std::uint64_t seed = 1; seed < 600; ++seed) {
    Random r{seed};
    auto s = generate(r, "", 2).schedule;
    if (!problems(s).empty()) continue;
    ExploreOptions o{.max_states = 3000, .reduce = false};
    const auto first = explore::explore(s, o);
    // The reduction leaves out ends at which a post is pending. Without a cell, there is nothing to expect.
    if (first.verdict != Ending::clean || !first.complete || first.posts_pending || first.last.empty()) continue;
    expect(s, o.profile, first.last, r);
    INFO("seed " << seed << "\n" << to_text(s));
    REQUIRE(problems(s).empty());
    const auto whole = explore::explore(s, o);
    o.reduce = true;
    CHECK(std::string(name(explore::explore(s, o).verdict)) == name(whole.verdict));
    (whole.verdict == Ending::unmet ? unmet : met) += 1;
  }
  CHECK(unmet > 20);
  CHECK(met > 50);
}

TEST_CASE("families without mutations are right, as far as they mean to be") {
  for (const auto family : {"ring", "counter", "barrier", "hosts", "pipeline", "tree"})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random r{seed};
      // No second schedule beside it either: that one might hold an engine.
      auto g = generate(r, family, 0);
      if (g.schedule.queues.back().name.back() == 'x') continue;
      REQUIRE(problems(g.schedule).empty());
      INFO(to_text(g.schedule));
      const auto o = explore::explore(g.schedule, {.trace = true});
      INFO(o.text);
      CHECK_FALSE(o.broken());
    }
}

TEST_CASE("shrinking keeps the property, and leaves little") {
  Random r{7};
  auto s = generate(r, "tree", 0).schedule;
  const auto one_copy = [](const Schedule& x) {
    std::size_t copies = 0;
    for (const auto& q : x.queues)
      for (Reader reader{q.dwords}; reader;) copies += reader.next().is<CopyLinear>();
    return copies != 0;
  };
  const auto least = shrink(s, one_copy);
  CHECK(one_copy(least));
  CHECK(problems(least).empty());
  REQUIRE(least.queues.size() == 1);
  CHECK(least.queues[0].dwords.size() == 7);
  CHECK(least.hosts.empty());
}
