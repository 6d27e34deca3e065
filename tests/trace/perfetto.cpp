// SPDX-License-Identifier: MIT
#include "sample.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace sdma;
using nlohmann::json;

namespace {

std::int64_t ns(const json& micro) { return static_cast<std::int64_t>(micro.get<double>() * 1000 + 0.5); }

/// What every picture must be, whatever is in it; returns the events by phase.
std::map<std::string, std::vector<json>> structure(const trace::Trace& t) {
  const auto file = test::parse_json(trace::to_perfetto(t));
  CHECK(file["displayTimeUnit"] == "ns");
  std::map<std::string, std::vector<json>> by;
  std::set<int> processes, threads;
  std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> rows;
  std::map<std::uint64_t, int> arrows;
  for (const auto& e : file["traceEvents"]) {
    const auto phase = e["ph"].get<std::string>();
    by[phase].push_back(e);
    const auto pid = e["pid"].get<int>(), tid = e["tid"].get<int>();
    if (phase == "M") {
      if (e["name"] == "process_name") CHECK(processes.insert(pid).second);
      if (e["name"] == "thread_name") CHECK(threads.insert(tid).second);
      continue;
    }
    CHECK(processes.count(pid) == 1);
    CHECK(threads.count(tid) == 1);
    CHECK(e["name"].is_string());
    CHECK(e["ts"].get<double>() >= 0);
    if (phase == "X") {
      CHECK(e["dur"].get<double>() >= 0);
      rows[tid].push_back({ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])});
    } else if (phase == "s") {
      ++arrows[e["id"].get<std::uint64_t>()];
    } else if (phase == "f") {
      CHECK(e["bp"] == "e");
      --arrows[e["id"].get<std::uint64_t>()];
    } else if (phase == "C") {
      CHECK(e["args"]["value"].is_number());
    } else {
      CHECK(phase == "i");
    }
  }
  for (const auto& [id, open] : arrows) CHECK(open == 0);
  // Bars of one row do not overlap: a viewer would nest or drop them. Arrows hang on bars.
  for (auto& [tid, bars] : rows) {
    std::sort(bars.begin(), bars.end());
    for (std::size_t i = 1; i < bars.size(); ++i) CHECK(bars[i].first >= bars[i - 1].second);
  }
  for (const auto* phase : {"s", "f"})
    for (const auto& e : by[phase]) {
      bool hangs = false;
      for (const auto& [from, to] : rows[e["tid"].get<int>()])
        hangs = hangs || (from <= ns(e["ts"]) && ns(e["ts"]) <= to);
      CHECK(hangs);
    }
  std::erase_if(by, [](const auto& phase) { return phase.second.empty(); });
  return by;
}

}  // namespace

TEST_CASE("every event is in the picture, once") {
  const auto t = test::sample();
  auto by = structure(t);
  std::map<trace::Kind, std::size_t> count;
  for (const auto& e : t.events) ++count[e.kind];
  // The arrow of the host hangs on an action.
  CHECK(by["X"].size() == count[trace::Kind::packet_begin] + count[trace::Kind::action_begin]);
  CHECK(by["C"].size() == count[trace::Kind::counter]);
  CHECK(by["s"].size() == count[trace::Kind::flow_begin]);
  CHECK(by["f"].size() == count[trace::Kind::flow_end]);
  // Doorbell, signal, fault, created, destroyed, the end without a beginning, and the note of what was lost.
  CHECK(by["i"].size() == 7);
}

TEST_CASE("groups are processes and lanes are threads, by name, quotes and all") {
  auto by = structure(test::sample());
  std::set<std::string> processes, threads;
  for (const auto& e : by["M"]) {
    if (e["name"] == "process_name") processes.insert(e["args"]["name"].get<std::string>());
    if (e["name"] == "thread_name") threads.insert(e["args"]["name"].get<std::string>());
  }
  CHECK(processes == std::set<std::string>{"gpu0", "host", "links"});
  CHECK(threads == std::set<std::string>{"engine 14 queue 0", "engine 14 queue 0 (2)", "engine 14 queue 1",
                                         "engine 14 queue 1 (2)", "thread \"main\"\n\\",
                                         "0\xe2\x86\x92"
                                         "1"});
}

TEST_CASE("a packet is a bar with its time, its position and its text") {
  auto by = structure(test::sample());
  const auto& copy = by["X"][0];
  CHECK(copy["name"] == "copy_linear");
  CHECK(ns(copy["ts"]) == 1500);  // from the first event on
  CHECK(ns(copy["dur"]) == 501);
  CHECK(copy["args"]["position"] == "0x0");
  CHECK(copy["args"]["packet"] == "copy_linear bytes=4K src=0x7f0000010000 dst=gpu1.buf[32K]");
  CHECK(copy["args"]["epoch"] == "7");
  CHECK_FALSE(copy["args"].contains("unfinished"));
  const auto& overlapping = by["X"][1];
  CHECK(overlapping["tid"] != copy["tid"]);
  CHECK(ns(overlapping["dur"]) == 1600);
}

TEST_CASE("an action is a bar that says what a host thread does, and a signal has its name") {
  auto by = structure(test::sample());
  std::map<std::string, json> actions;
  for (const auto& e : by["X"])
    if (e["cat"] == "action") actions[e["name"].get<std::string>()] = e;
  REQUIRE(actions.size() == 2);
  CHECK(ns(actions["builds 3 packets for gpu0.push, epoch 7"]["dur"]) == 100);
  CHECK(actions["waits for host.done >= 8"]["args"]["unfinished"] == true);
  for (const auto& e : by["i"])
    if (e["name"] == "signal") CHECK(e["args"]["is"] == "host.done");
}

TEST_CASE("a queue of a lane begins its epochs anew") {
  trace::Recorder r(64);
  const auto lane = r.lane("gpu0", "engine 0 q");
  const auto fence = encode(Fence{.addr = GpuVa{0x1000}});
  for (std::uint64_t i = 0; i < 2; ++i) {
    r.queue_created(lane, 100 * i, 4096);
    r.packet_begin(lane, 100 * i + 10, 48, fence);  // published without an epoch, where the queue before had one
    r.packet_end(lane, 100 * i + 20, 48);
    r.epoch(lane, 100 * i + 20, 16, 3 + i);
    r.epoch(lane, 100 * i + 20, 32, 4 + i);
    r.packet_begin(lane, 100 * i + 30, 16, fence);
    r.packet_end(lane, 100 * i + 40, 16);
  }
  auto by = structure(r.snapshot());
  REQUIRE(by["X"].size() == 4);
  CHECK_FALSE(by["X"][0]["args"].contains("epoch"));
  CHECK(by["X"][1]["args"]["epoch"] == "3");
  CHECK_FALSE(by["X"][2]["args"].contains("epoch"));
  CHECK(by["X"][3]["args"]["epoch"] == "4");
}

TEST_CASE("long, unknown and unfinished packets are said to be so") {
  auto by = structure(test::sample());
  std::map<std::string, json> bars;
  for (const auto& e : by["X"]) bars[e["name"].get<std::string>()] = e;
  CHECK(bars["nop"]["args"]["packet"] == "nop of 100 dwords, 16 available");
  CHECK(bars["nop"]["args"]["dwords"] == 100);
  CHECK(bars["poll_mem"]["args"]["unfinished"] == true);
  CHECK(ns(bars["poll_mem"]["ts"]) + ns(bars["poll_mem"]["dur"]) == 5000);  // until the trace ends
  CHECK_FALSE(bars["packet"]["args"].contains("packet"));
  bool orphan = false;
  for (const auto& e : by["i"]) orphan = orphan || (e["name"] == "packet_end" && e["args"]["position"] == "0x3e7");
  CHECK(orphan);
}

TEST_CASE("arrows end in the bar that was running") {
  auto by = structure(test::sample());
  for (const auto& e : by["X"])
    if (e["name"] == "fence") CHECK(e["tid"] == by["f"][0]["tid"]);
  CHECK(by["s"][0]["id"] == by["f"][0]["id"]);

  trace::Recorder r(64);
  const auto lane = r.lane("g", "q");
  const auto fence = encode(Fence{.addr = GpuVa{0x1000}});
  r.packet_begin(lane, 10, 0, fence);
  r.packet_begin(lane, 20, 16, fence);  // in the second row
  r.flow_begin(lane, 30, 1);
  r.packet_end(lane, 40, 0);
  r.packet_end(lane, 50, 16);
  r.flow_end(lane, 45, 1);
  auto second = structure(r.snapshot());
  CHECK(second["s"][0]["tid"] == second["X"][1]["tid"]);
  CHECK(second["f"][0]["tid"] == second["X"][1]["tid"]);
  CHECK(second["X"][0]["tid"] != second["X"][1]["tid"]);
}

TEST_CASE("many arrows of one moment hang on one bar") {
  trace::Recorder r(64);
  const auto host = r.lane("host", "thread"), lane = r.lane("g", "q");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    r.flow_begin(host, 10, i);
    r.flow_end(lane, 10 + i, i);
  }
  auto by = structure(r.snapshot());
  CHECK(by["X"].size() == 4);
  CHECK(by["X"][0]["name"] == "trigger");
  CHECK(by["X"][1]["name"] == "completion");
}

TEST_CASE("packets of one position pair from the inside") {
  trace::Recorder r(64);
  const auto lane = r.lane("g", "q");
  const auto outer = encode(PollMem{});
  const auto inner = encode(Fence{});
  r.packet_begin(lane, 0, 0, outer);
  r.packet_begin(lane, 10, 0, inner);
  r.packet_end(lane, 20, 0);
  r.packet_end(lane, 30, 0);
  auto by = structure(r.snapshot());
  REQUIRE(by["X"].size() == 2);
  CHECK(ns(by["X"][0]["dur"]) == 30);
  CHECK(ns(by["X"][1]["dur"]) == 10);
}

TEST_CASE("a trace of nothing is a picture of nothing") {
  CHECK(structure({}).empty());
  trace::Trace t;
  t.lanes = {{"g", "q"}};
  CHECK(structure(t)["M"].size() == 4);
}

TEST_CASE("what was lost is in the picture") {
  auto t = test::sample();
  auto by = structure(t);
  CHECK(by["i"].back()["name"] == "2 events were lost");
  t.lost = 0;
  CHECK(trace::to_perfetto(t).find("were lost") == std::string::npos);
}

// `ninja -C build bless` sets SDMA_BLESS=1, which writes the golden files anew.
TEST_CASE("the golden files") {
  const std::string golden = std::string(SDMA_SOURCE_ROOT) + "/tests/trace/golden/sample";
  const std::map<std::string, std::string> files{{".jsonl", trace::to_json_lines(test::sample())},
                                                 {".json", trace::to_perfetto(test::sample())}};
  for (const auto& [suffix, text] : files) {
    CAPTURE(golden + suffix);
    if (std::getenv("SDMA_BLESS")) std::ofstream(golden + suffix, std::ios::binary) << text;
    std::ostringstream there;
    there << std::ifstream(golden + suffix, std::ios::binary).rdbuf();
    CHECK(there.str() == text);
  }
}
