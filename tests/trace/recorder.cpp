// SPDX-License-Identifier: MIT
#include "sdma/packets/encode.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/trace/trace.hpp"
#include "support/catch.hpp"

#include <map>
#include <thread>
#include <type_traits>

using namespace sdma;

TEST_CASE("events are of fixed size and need nobody to destroy them") {
  static_assert(std::is_trivially_copyable_v<trace::Event> && sizeof(trace::Event) <= 120);
}

TEST_CASE("each kind has a name of its own, and no other number has one") {
  std::map<std::string_view, int> names;
  for (std::size_t i = 0; i < trace::kKinds; ++i) ++names[trace::name(static_cast<trace::Kind>(i))];
  CHECK(names.size() == trace::kKinds);
  CHECK(names.count("") == 0);
  CHECK(trace::name(trace::Kind::flow_end) == "flow_end");
  CHECK(trace::name(static_cast<trace::Kind>(trace::kKinds)).empty());
}

TEST_CASE("a lane and a text are made once") {
  trace::Recorder r(16);
  const auto a = r.lane("gpu0", "engine 14 queue 0"), b = r.lane("gpu0", "engine 14 queue 1");
  CHECK(a.value == 0);
  CHECK(b.value == 1);
  CHECK(r.lane("gpu1", "engine 14 queue 0").value == 2);
  CHECK(r.lane("gpu0", "engine 14 queue 0") == a);
  CHECK(r.text("bytes") == r.text("bytes"));
  CHECK_FALSE(r.text("bytes") == r.text("packets"));
  const auto t = r.snapshot();
  REQUIRE(t.lanes.size() == 3);
  CHECK(t.lanes[2] == trace::Lane{"gpu1", "engine 14 queue 0"});
  CHECK(t.texts == std::vector<std::string>{"bytes", "packets"});
}

TEST_CASE("what is recorded comes back, in the order of time") {
  trace::Recorder r(64, "virtual");
  const auto lane = r.lane("gpu0", "queue"), host = r.lane("host", "thread");
  const auto why = r.text("unmapped"), bytes = r.text("bytes");
  const auto fence = encode(Fence{.addr = GpuVa{0x1000}, .value = 3});
  r.packet_end(lane, 40, 64);
  r.packet_begin(lane, 30, 64, fence);
  r.doorbell(host, 20, 80);
  r.signal(lane, 40, GpuVa{0x1000}, 3);
  r.fault(lane, 50, 80, why, GpuVa{0xdead000});
  r.queue_created(lane, 10, 65536);
  r.queue_destroyed(lane, 60, 80);
  r.counter(lane, 45, bytes, 4096);
  r.flow_begin(host, 20, 7);
  r.flow_end(lane, 40, 7);
  const auto t = r.snapshot();
  CHECK(t.clock == "virtual");
  CHECK(t.lost == 0);
  const std::vector<trace::Event> expected{
      {.ns = 10, .lane = lane, .kind = trace::Kind::queue_created, .value = 65536},
      {.ns = 20, .lane = host, .kind = trace::Kind::doorbell, .position = 80},
      {.ns = 20, .lane = host, .kind = trace::Kind::flow_begin, .value = 7},
      {.ns = 30,
       .lane = lane,
       .kind = trace::Kind::packet_begin,
       .dword_count = 4,
       .length = 4,
       .position = 64,
       .dwords = {fence[0], fence[1], fence[2], fence[3]}},
      {.ns = 40, .lane = lane, .kind = trace::Kind::packet_end, .position = 64},
      {.ns = 40, .lane = lane, .kind = trace::Kind::signal, .value = 3, .address = GpuVa{0x1000}},
      {.ns = 40, .lane = lane, .kind = trace::Kind::flow_end, .value = 7},
      {.ns = 45, .lane = lane, .kind = trace::Kind::counter, .text = bytes, .value = 4096},
      {.ns = 50, .lane = lane, .kind = trace::Kind::fault, .text = why, .position = 80, .address = GpuVa{0xdead000}},
      {.ns = 60, .lane = lane, .kind = trace::Kind::queue_destroyed, .position = 80}};
  CHECK(t.events == expected);
  CHECK(r.snapshot() == t);  // taking it changes nothing
}

TEST_CASE("of a long packet the beginning is kept, and its length") {
  trace::Recorder r(16);
  std::vector<std::uint32_t> dwords(100);
  for (std::uint32_t i = 0; i < 100; ++i) dwords[i] = i;
  r.packet_begin(r.lane("g", "q"), 1, 0, dwords);
  const auto t = r.snapshot();
  REQUIRE(t.events.size() == 1);
  CHECK(t.events[0].length == 100);
  CHECK(t.events[0].dword_count == trace::Event::kDwords);
  CHECK(t.events[0].packet().back() == trace::Event::kDwords - 1);
}

TEST_CASE("a lane uses the room of the others, in order, and what does not fit is counted") {
  trace::Recorder r(64);
  CHECK(r.capacity() == 64);
  r.lane("g", "first");
  const auto lane = r.lane("g", "q");  // its own part is not the first, so it overflows around the end
  for (std::uint64_t i = 0; i < 100; ++i) r.doorbell(lane, 5, i);
  CHECK(r.lost() == 36);
  const auto t = r.snapshot();
  CHECK(t.lost == 36);
  REQUIRE(t.events.size() == 64);
  for (std::uint64_t i = 0; i < 64; ++i) REQUIRE(t.events[i].position == i);
}

TEST_CASE("a recorder without room loses everything, and says so") {
  trace::Recorder none(0);
  CHECK(none.capacity() == 0);
  none.doorbell(none.lane("g", "q"), 1, 0);
  CHECK(none.snapshot().events.empty());
  CHECK(none.snapshot().lost == 1);
  trace::Recorder small(1);
  CHECK(small.capacity() == trace::Recorder::kStripes);
  trace::Recorder huge(std::size_t{1} << 60);
  CHECK(huge.capacity() == 0);
  huge.doorbell(huge.lane("g", "q"), 1, 0);
  CHECK(huge.lost() == 1);
}

TEST_CASE("a recorder that grows keeps all events, in the order of recording") {
  constexpr std::uint64_t kEvents = trace::Recorder::kDefaultEvents + 1000;
  trace::Recorder r(trace::Recorder::kGrows, "virtual");
  CHECK(r.capacity() == trace::Recorder::kGrows);
  const auto lane = r.lane("g", "q");
  for (std::uint64_t i = 0; i < kEvents; ++i) r.doorbell(lane, 5, i);
  const auto t = r.snapshot();
  CHECK(t.clock == "virtual");
  CHECK(t.lost == 0);
  REQUIRE(t.events.size() == kEvents);
  for (std::uint64_t i = 0; i < kEvents; ++i) REQUIRE(t.events[i].position == i);
}

TEST_CASE("events of lanes and texts that this recorder did not give are counted as lost") {
  trace::Recorder r(16);
  const auto lane = r.lane("g", "q");
  r.doorbell({7}, 1, 0);
  r.counter(lane, 1, {3}, 0);
  r.record({.ns = 1, .lane = lane, .kind = static_cast<trace::Kind>(200)});
  r.doorbell(lane, 1, 0);
  const auto t = r.snapshot();
  CHECK(t.events.size() == 1);
  CHECK(t.lost == 3);
}

TEST_CASE("arrows have numbers of their own") {
  trace::Recorder r(16);
  const auto a = r.new_flow(), b = r.new_flow();
  CHECK(a != b);
}

// Under ThreadSanitizer: threads on shared and on own lanes, and snapshots meanwhile.
TEST_CASE("threads record at once, and nothing is torn or lost unsaid") {
  constexpr std::uint64_t kThreads = 4, kEach = 3000;
  trace::Recorder r(8000);
  const auto shared = r.lane("g", "shared");
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&r, shared, t] {
      const auto own = r.lane("g", "own " + std::to_string(t));
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const std::uint32_t dwords[2]{static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(i)};
        r.packet_begin(i % 2 ? own : shared, i, t * kEach + i, dwords);
      }
    });
  bool whole = true;
  const auto check = [&](const trace::Trace& t) {
    for (const auto& e : t.events) whole = whole && e.dword_count == 2 && e.position == e.dwords.front() * kEach + e.ns;
  };
  for (int i = 0; i < 5; ++i) check(r.snapshot());
  for (auto& t : threads) t.join();
  const auto t = r.snapshot();
  check(t);
  CHECK(whole);
  CHECK(t.events.size() == r.capacity());
  CHECK(t.events.size() + t.lost == kThreads * kEach);
}
