// SPDX-License-Identifier: MIT
#include "sdma/simulate/simulate.hpp"

#include "draw/elements.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <string>

using namespace sdma;
using test::count;
using Json = nlohmann::json;

namespace {

const Schedule& schedule() {
  static const auto s = *parse_schedule(
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K\nbuffer gpu1.out bytes=64K\nsignal host.done value=0\nsignal host.go "
      "value=0\n"
      "queue gpu0.push peer=gpu1\npoll_mem addr=host.go func=eq reference=1\ncopy_linear bytes=64K src=gpu0.in "
      "dst=gpu1.out\n"
      "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nset host.go = 1\nwait host.done == "
      "1\nend\n");
  return s;
}

}  // namespace

TEST_CASE(
    "the trace is the project's: lanes of host, queue and link, begins with ends, an arrow from trigger to "
    "completion") {
  trace::Recorder rec(1024, "virtual");
  REQUIRE(simulate(schedule(), *mi300x_machine(2), {.recorder = &rec}));
  const auto t = rec.snapshot();
  CHECK(t.clock == "virtual");
  CHECK(t.lost == 0);
  const auto lane = [&](const char* group, const char* name) {
    const auto at = std::find(t.lanes.begin(), t.lanes.end(), trace::Lane{group, name});
    REQUIRE(at != t.lanes.end());
    return trace::LaneId{static_cast<std::uint32_t>(at - t.lanes.begin())};
  };
  const auto host = lane("host", "main"), queue = lane("gpu0", "engine 14 push"), link = lane("links", "gpu0->gpu1");
  const auto events = [&](trace::LaneId l, trace::Kind k) {
    return std::count_if(t.events.begin(), t.events.end(), [&](const auto& e) { return e.lane == l && e.kind == k; });
  };
  CHECK(events(queue, trace::Kind::packet_begin) == 3);
  CHECK(events(queue, trace::Kind::packet_end) == 3);
  CHECK(events(link, trace::Kind::packet_begin) == 1);
  CHECK(events(link, trace::Kind::packet_end) == 1);
  CHECK(events(queue, trace::Kind::doorbell) == 1);
  CHECK(events(queue, trace::Kind::epoch) == 1);
  CHECK(events(host, trace::Kind::packet_begin) == 0);
  CHECK(events(host, trace::Kind::action_begin) == 4);
  CHECK(events(host, trace::Kind::action_end) == 4);
  CHECK(events(host, trace::Kind::signal) == 1);
  CHECK(events(host, trace::Kind::flow_begin) == 1);
  CHECK(events(queue, trace::Kind::flow_end) == 1);
  CHECK(*trace::from_json_lines(trace::to_json_lines(t)) == t);
  const auto svg = timeline_svg(t, {.title = "a < b & c"});
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(count(svg, "<title>copy_linear") == 2);  // of the queue, of the link
  CHECK(count(svg, "<path") == 1);
}

TEST_CASE("explain: what each phase depends on") {
  const auto m = *mi300x_machine(2);
  const auto t = *simulate(schedule(), m);
  const auto hangs = *sensitivity(schedule(), m);
  const auto text = explain(t, hangs);
  std::string lines;
  for (std::size_t i = 0; i < kPhases; ++i) {
    // One percent more of everything that takes time gives one percent more of the phase.
    double sum = 0;
    for (const auto& r : hangs.rows)
      if (unit(r.cost) == "ns") sum += r.phase_ns[i];
    if (static_cast<Phase>(i) == Phase::schedule || static_cast<Phase>(i) == Phase::sync)
      CHECK(sum == Approx(t.phase_ns[i] / 100).epsilon(1e-3));
    CHECK((text.find(std::string("\n") + std::string(name(static_cast<Phase>(i)))) != text.npos) ==
          (t.phase_ns[i] > 0));
  }
  CHECK(text.find("engine.poll_ns") != text.npos);
  CHECK(text.find("\nsync        engine.release_ns ") != text.npos);
  CHECK(count(text, "engine.poll_ns") == 1);  // it is in one phase
}

TEST_CASE("JSON holds what the table says") {
  const auto m = *mi300x_machine(2);
  const auto t = *simulate(schedule(), m);
  const auto h = *sensitivity(schedule(), m);
  const auto j = test::parse_json(to_json(t, &h));
  CHECK(j["ns"] == t.ns);
  double sum = 0;
  for (const auto& [phase, ns] : j["phases"].items()) sum += ns.get<double>();
  CHECK(sum == Approx(t.ns));
  CHECK(j["path"].size() == t.path.size());
  CHECK(j["busy"].size() == t.busy.size());
  CHECK(j["sensitivity"].size() == h.rows.size());
  CHECK(j["uncertainty_ns"] == h.uncertainty_ns);
  const auto table = to_table(t, &h);
  CHECK(table.find(time_text(t.ns)) != std::string::npos);
  CHECK(table.find(t.bottleneck) != std::string::npos);
  CHECK(table.find("link gpu0->gpu1") != std::string::npos);
}

TEST_CASE("times for people") {
  CHECK(time_text(430) == "430 ns");
  CHECK(time_text(1600) == "1.60 us");
  CHECK(time_text(2.85e6) == "2.850 ms");
  CHECK(time_text(3e9) == "3.000 s");
}
