// SPDX-License-Identifier: MIT
// Pictures of traces: what they contain. tests/draw tests how they are drawn.
#include "draw/elements.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"

using namespace sdma::trace;
using Happens = sdma::trace::Kind;
using test::count;

namespace {

/// A packet that nobody knows, of `lane`.
void packet(Trace& t, std::uint32_t lane, std::uint64_t from, std::uint64_t to) {
  const auto position = t.events.size();
  t.events.push_back({.ns = from, .lane = {lane}, .kind = Happens::packet_begin, .position = position});
  t.events.push_back({.ns = to, .lane = {lane}, .kind = Happens::packet_end, .position = position});
}

constexpr std::uint64_t kStart = 86'400'000'000'000;  // a day after the machine started

}  // namespace

TEST_CASE("two traces share one axis: each begins at 0, and has its title above its lanes") {
  Trace a{.lanes = {{"gpu0", "engine 0"}, {"gpu1", "unused"}}}, b{.lanes = {{"gpu0", "engine 0"}}};
  packet(a, 0, kStart, kStart + 1000);
  packet(b, 0, 500, 4500);
  b.lost = 3;
  const Titled both[] = {{"first.sdma", &a}, {"second.sdma", &b}};
  const auto svg = timelines_svg(both, {.title = "both", .width = 900});
  CHECK(count(svg, "<title>packet engine 0 0.000 to 1.000 us</title>") == 1);
  CHECK(count(svg, "<title>packet engine 0 0.000 to 4.000 us</title>") == 1);
  CHECK(count(svg, ">4</text>") == 1);
  CHECK(svg.find(">first.sdma<") < svg.find("0.000 to 1.000"));
  CHECK(svg.find("0.000 to 1.000") < svg.find(">second.sdma<"));
  CHECK(svg.find(">second.sdma<") < svg.find("0.000 to 4.000"));
  CHECK(count(svg, "3 events were lost") == 1);
  CHECK(test::number(svg, "width") == 900);
  CHECK(timelines_svg({}).ends_with("</svg>\n"));
}

TEST_CASE("a picture's times count from the first event, whatever the clock") {
  Trace t{.lanes = {{"gpu0", "engine 0"}, {"host", "main"}}};
  packet(t, 0, kStart, kStart + 1000);
  packet(t, 1, kStart + 1000, kStart + 3000);
  const auto svg = timeline_svg(t);
  CHECK(count(svg, "<title>packet engine 0 0.000 to 1.000 us</title>") == 1);
  CHECK(count(svg, "<title>host main 1.000 to 3.000 us</title>") == 1);
  CHECK(count(svg, ">2.5</text>") == 1);
  CHECK(svg.find(">host main<") < svg.find(">gpu0 engine 0<"));
  const auto part = timeline_svg(t, {.begin_ns = kStart + 1500, .end_ns = kStart + 2500});
  CHECK(count(part, ">1.6</text>") == 1);
  CHECK(count(part, "<title>") == 1);
  CHECK(timeline_svg({}).ends_with("</svg>\n"));
}

TEST_CASE("the bar of an action says what a host thread does") {
  Trace t{.lanes = {{"host", "main"}}, .texts = {"waits for host.done >= {}"}};
  t.events = {{.ns = kStart, .kind = Happens::action_begin, .value = 8},
              {.ns = kStart + 1000, .kind = Happens::action_end}};
  CHECK(count(timeline_svg(t), "<title>waits for host.done &gt;= 8 main 0.000 to 1.000 us</title>") == 1);
}

TEST_CASE("an arrow needs both its ends, in either order of one time") {
  Trace t{.lanes = {{"gpu0", "a"}, {"gpu0", "b"}}};
  packet(t, 0, 0, 10);
  packet(t, 1, 0, 10);
  t.events.push_back({.ns = 10, .lane = {0}, .kind = Happens::flow_end, .value = 1});
  t.events.push_back({.ns = 10, .lane = {0}, .kind = Happens::flow_end, .value = 2});
  t.events.push_back({.ns = 10, .lane = {1}, .kind = Happens::flow_begin, .value = 1});
  t.events.push_back({.ns = 10, .lane = {1}, .kind = Happens::flow_begin, .value = 3});
  CHECK(count(timeline_svg(t), "<path") == 1);
}

TEST_CASE("a picture of many packets merges those of a pixel, and says so") {
  Trace t{.lanes = {{"gpu0", "a"}, {"gpu0", "b"}}, .lost = 7};
  for (std::uint32_t i = 0; i < 119'000; ++i) packet(t, 0, kStart + 10 * i, kStart + 10 * i + 5);
  packet(t, 1, kStart + 1'189'990, kStart + 1'190'000);  // alone in its lane
  const auto svg = timeline_svg(t);
  CHECK(count(svg, "<title>") < 1300);
  CHECK(count(svg, "<title>packet b 1189.990 to 1190.000 us</title>") == 1);
  CHECK(count(svg, "<title>100 packets a 1.000 to 1.995 us, busy 50 %</title>") == 1);
  CHECK(count(svg, ">7 events were lost, 119000 packets are drawn as 1190 blocks</text>") == 1);
  // In a part with fewer packets, each has its own bar.
  const auto part = timeline_svg(t, {.begin_ns = kStart + 200'006.0, .end_ns = kStart + 200'100.0});
  CHECK(count(part, "<title>") == 10);
  CHECK(count(part, ">7 events were lost</text>") == 1);
}

TEST_CASE("a picture with more bars than fit says how many are missing") {
  Trace t{.lanes = {{"gpu0", "a"}}};
  for (std::uint32_t i = 0; i < 20'010; ++i)  // none ends, so each has a row
    t.events.push_back({.ns = kStart + i, .kind = Happens::packet_begin, .position = i});
  t.events.push_back({.ns = kStart + 10'000'000, .kind = Happens::doorbell});
  const auto svg = timeline_svg(t);
  CHECK(count(svg, "<title>") == 20'000);
  CHECK(count(svg, ">10 bars are not drawn</text>") == 1);
}

TEST_CASE("of too many arrows a picture draws some, over the whole time, and says so") {
  Trace t{.lanes = {{"gpu0", "a"}}};
  packet(t, 0, 0, 6000);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    t.events.push_back({.ns = 6000 + i, .kind = Happens::flow_begin, .value = i});
    t.events.push_back({.ns = 6000 + i, .kind = Happens::flow_end, .value = i});
  }
  const auto svg = timeline_svg(t);
  CHECK(count(svg, "<path") == 1667);
  CHECK(count(svg, ">1 of 3 arrows is drawn</text>") == 1);
}

TEST_CASE("a trace of some GPUs has their events, those of their links, and those of the host") {
  Trace t{.lanes = {{"host", "main"},
                    {"gpu0", "engine 1"},
                    {"gpu1", "engine 1"},
                    {"gpu10", "engine 1"},
                    {"links", "gpu0->gpu1"},
                    {"links", "gpu10->gpu0"},
                    {"links", "switch"},
                    {"critical path", "last round"}}};
  for (std::uint32_t lane = 0; lane < t.lanes.size(); ++lane) packet(t, lane, kStart, kStart + 1000);
  const auto lanes = [&](std::vector<std::uint32_t> gpus) {
    const auto some = of_gpus(t, gpus);
    CHECK(some.lanes == t.lanes);
    std::string out;
    for (const auto& e : some.events)
      if (e.kind == Happens::packet_begin) out += std::to_string(e.lane.value);
    return out;
  };
  CHECK(lanes({0}) == "014567");
  CHECK(lanes({1}) == "02467");
  CHECK(lanes({1, 10}) == "0234567");
  CHECK(lanes({5}) == "067");
}
