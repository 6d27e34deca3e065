// SPDX-License-Identifier: MIT
// --sweep: which values it has, what it changes, and which parameter caps another.
#include "perf/axes.hpp"

#include "perf/report.hpp"
#include "perf/schedule_file.hpp"
#include "support.hpp"

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using test::settings;

TEST_CASE("two sweeps give all pairs of values, in order") {
  const auto s = settings("--sweep=xgmi.rate=48,64 --sweep=peers_per_engine=1..4");
  std::string all;
  for (const auto& values : combinations(s.axes)) all += at_text(s.axes, values) + "; ";
  CHECK(all ==
        "xgmi.rate=48, peers_per_engine=1; xgmi.rate=48, peers_per_engine=2; xgmi.rate=48, peers_per_engine=4; "
        "xgmi.rate=64, peers_per_engine=1; xgmi.rate=64, peers_per_engine=2; xgmi.rate=64, peers_per_engine=4; ");
  CHECK(combinations({}).size() == 1);
  CHECK(at_text({}, {}) == "");
}

TEST_CASE("a sweep changes the machine, the options, or the params of files") {
  auto s = settings("--variant=pcpy,a.sdma --sweep=engine.window_bytes=16K --sweep=chunks=4");
  REQUIRE(load(*s.files[0], "sdma 1\nparam N = 2\nparam bytes = 1K\nparam chunks = 1\ngpus N\n"));
  auto m = *mi300x_machine();
  REQUIRE(apply(s, &m, {32768, 4}));
  CHECK(m[Cost::engine_window] == 32768);
  CHECK(s.files[0]->set.back().name == "chunks");
  CHECK(s.files[0]->set.back().value == "4");
  REQUIRE(apply(s, &m, {65536, 8}));
  CHECK(std::count_if(s.files[0]->set.begin(), s.files[0]->set.end(),
                      [](const auto& p) { return p.name == "chunks"; }) == 1);
  CHECK_FALSE(apply(s, nullptr, {65536, 8}));
  auto option = settings("--sweep=peers_per_engine=2");
  REQUIRE(apply(option, nullptr, {3}));
  CHECK(option.options.peers_per_engine == 3);
  auto missing = settings("--variant=a.sdma --sweep=pieces=2");
  CHECK(apply(missing, nullptr, {2}).error().message == "no schedule file has this param");
}

TEST_CASE("what a parameter does not change is said, with its cap; other values have their own speed-ups") {
  const auto s = settings("--variant=pcpy,b2b -b 64M -e 64M -g 2 --sweep=xgmi.rate=16,128,256");
  const auto machine = *mi300x_machine();
  std::vector<Point> points;
  for (const auto& values : combinations(s.axes))
    for (const auto& way : s.ways) {
      auto now = s;
      auto m = machine;
      REQUIRE(apply(now, &m, values));
      auto p = modelled(now, default_table(), m, way, s.least);
      REQUIRE(p);
      p->at = at_text(s.axes, values);
      points.push_back(*p);
    }
  CHECK(points[0].us.mean > 2 * points[2].us.mean);
  const auto text = caps(s, default_table(), machine, points);
  REQUIRE(text);
  CHECK(*text == "# xgmi.rate from 128 to 256 changes nothing: engine.bytes_per_ns caps it\n");
  // Compared with pcpy at the same value of the sweep.
  CHECK(*speed_up(points, points[3]) == Approx(points[2].us.median / points[3].us.median));
}
