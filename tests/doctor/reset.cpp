// SPDX-License-Identifier: MIT
// What a diagnosis says after the reset of an engine: of which queues, from which words, and never that a queue is
// whole of which too little is known. tests/queue/reset.cpp has the packets' fates.
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/read.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr GpuVa kResetDone{0x7f0000001000};

/// Two copies, each with a fence, and an atomic: all consumed.
QueueSnapshot reset_queue(std::uint32_t engine, std::uint64_t id) {
  QueueSnapshot q{.name = "q" + std::to_string(id),
                  .id = id,
                  .gpu = {GpuId{0}, Source::driver},
                  .engine = {EngineId{engine}, Source::driver}};
  q.ring.resize(256);
  auto* at = q.ring.data();
  for (const std::uint32_t epoch : {1u, 2u}) {
    at = encode_to(CopyLinear{.src = GpuVa{0x100000}, .dst = GpuVa{0x200000}, .bytes = 4096}, at);
    at = encode_to(Fence{.addr = kResetDone, .value = epoch}, at);
  }
  at = encode_to(Atomic{.addr = GpuVa{0x300000}, .value = 1}, at);
  q.rptr = q.wptr = {static_cast<std::uint64_t>(at - q.ring.data()) * 4, Source::memory};
  return q;
}
Snapshot reset_snapshot(std::uint32_t epoch) {
  Snapshot s;
  s.queues = {reset_queue(0, 3), reset_queue(1, 4)};
  s.words.add(kResetDone, epoch, 4);
  return s;
}
LogEvent reset_event(std::string said, std::optional<std::uint32_t> of = {}) {
  LogEvent e;
  e.said = std::move(said);
  e.queue = of;
  return e;
}

}  // namespace

TEST_CASE("without a reset, nothing is said of one") {
  CHECK(diagnose(reset_snapshot(1)).after_reset.empty());
  auto s = reset_snapshot(1);
  s.events = {reset_event("ring sdma0 timeout, signaled seq=4, emitted seq=5")};
  CHECK(diagnose(s).after_reset.empty());
}

TEST_CASE("a log that names a queue means its engine, and one that does not means all") {
  auto s = reset_snapshot(1);
  s.events = {reset_event("queue id 0x3 at pasid 0x8005 is reset", 3)};
  REQUIRE(diagnose(s).after_reset.size() == 1);
  CHECK(diagnose(s).after_reset[0].queue == 0);
  s.queues[1].engine = {};
  CHECK(diagnose(s).after_reset.size() == 2);  // it may be on that engine
  s = reset_snapshot(1);
  s.events = {reset_event("Queues reset on process trainer tid 4711 thread trainer pid 4711")};
  CHECK(diagnose(s).after_reset.size() == 2);
  s.events.clear();
  s.queues[1].fault = {Fault{.kind = FaultKind::reset}, Source::driver};
  REQUIRE(diagnose(s).after_reset.size() == 1);
  CHECK(diagnose(s).after_reset[0].queue == 1);
}

TEST_CASE("the words of fences decide, and an atomic in doubt is held") {
  auto s = reset_snapshot(1);
  s.after_reset = true;
  const auto d = diagnose(s);
  REQUIRE(d.after_reset.size() == 2);
  const auto& a = d.after_reset[0];
  CHECK(a.state == "again");  // the second fence has not landed, so the atomic after it was not executed
  CHECK(a.from == 11 * 4);
  CHECK((a.repeat == 1 && a.send == 2 && a.held == 0 && a.dwords == 19));
  REQUIRE(a.packets.size() == 3);
  CHECK(a.packets[0].fate == "repeat");
  CHECK_THAT(to_text(d), Catch::Contains("q3: complete before 0x2c; 1 to repeat, 2 to send, 19 dwords; 0 held."));

  auto landed = reset_snapshot(2);
  landed.after_reset = true;
  CHECK(diagnose(landed).after_reset[0].state == "decide");
  CHECK_THAT(to_text(diagnose(landed)), Catch::Contains("1 held: decide whether they were executed."));
  CHECK_THAT(to_json(diagnose(landed)), Catch::Contains("\"after_reset\""));
}

TEST_CASE("a queue of which too little is known is not called whole") {
  auto s = reset_snapshot(2);
  s.after_reset = true;
  s.queues[0].ring.clear();
  s.queues[1].positions_wrap = true;
  const auto d = diagnose(s);
  for (const auto& a : d.after_reset) {
    CHECK(a.state == "unknown");
    CHECK_FALSE(a.why.empty());
  }
  CHECK_THAT(to_text(d), Catch::Contains("q3: not known to be whole: the ring cannot be read."));
}

TEST_CASE("a snapshot that is saved keeps that the engine was reset") {
  auto s = reset_snapshot(1);
  s.after_reset = true;
  const auto back = snapshot_from_json(to_json(s), "saved");
  REQUIRE(back);
  CHECK(back->after_reset);
}
