// SPDX-License-Identifier: MIT
// Snapshots from files: ring dumps, text, recordings, core files.
#include "sdma/doctor/read.hpp"

#include "core_file.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

#include <utility>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr GpuVa kWord{0x7f0000001000};

template <class P> void put(std::vector<std::uint32_t>& out, const P& p) {
  const auto n = out.size();
  out.resize(n + length(p));
  encode_to(p, out.data() + n);
}
/// A ring of 256 dwords that stands at a poll; `end` becomes its wptr.
std::vector<std::uint32_t> polling_ring(std::uint64_t& end) {
  std::vector<std::uint32_t> ring;
  put(ring, PollMem{.addr = kWord, .reference = 1});
  put(ring, Fence{.addr = GpuVa{0x7f0000002000}, .value = 1});
  end = ring.size() * 4;
  ring.resize(256);
  return ring;
}
HangClass first_class(const Snapshot& s) { return diagnose(s).findings.front().what; }

using core_file::GpuCore;

}  // namespace

TEST_CASE("words are read as they were added last") {
  Words w;
  w.add(kWord, 0x1111111122222222, 8);
  w.add(kWord + 4, 0x33333333, 4);
  std::uint64_t value = 0;
  CHECK(w.read(kWord, std::as_writable_bytes(std::span(&value, 1))) == Errc::ok);
  CHECK(value == 0x3333333322222222);
  CHECK(w.read(kWord + 4, std::as_writable_bytes(std::span(&value, 1))) == Errc::unmapped);
}

TEST_CASE("a wait for a word that still changes is not a verdict") {
  std::uint64_t end = 0;
  Snapshot s;
  s.queues.push_back(
      {.name = "q", .ring = polling_ring(end), .rptr = {0, Source::memory}, .wptr = {end, Source::memory}});
  s.words.add(kWord, 0, 8);
  s.watched_ns = 2'000'000'000;
  s.all_queues = s.all_threads = true;
  CHECK(diagnose(s).verdict() == Verdict::hung);
  s.moving.push_back({.va = kWord, .first = 7, .last = 0, .changes = 63, .looks = 64});
  const auto d = diagnose(s);
  CHECK(d.verdict() == Verdict::undecided);
  CHECK(to_text(d).find("changed at 63 of 64") != std::string::npos);
  // A word that nothing waits for decides nothing.
  s.moving.front().va = kWord + 64;
  CHECK(diagnose(s).verdict() == Verdict::hung);
  s.queues.front().rptr_first = {0, Source::memory};
  s.queues.front().rptr.value = end;
  CHECK(to_text(diagnose(s)).find("moves, 20 bytes of packets per second") != std::string::npos);
}

TEST_CASE("a ring dump has positions, a doorbell and an engine") {
  std::uint64_t end = 0;
  RingDump e{.gpu = {1}, .engine = {4}, .label = "gather", .dwords = polling_ring(end)};
  e.committed = e.reserved = e.wptr = end;
  Snapshot s;
  add(s, e, "a.ring");
  REQUIRE(s.queues.size() == 1);
  CHECK(s.queues[0].name == "a.ring (gather)");
  CHECK((s.queues[0].engine && s.queues[0].engine.value.value == 4));
  CHECK(first_class(s) == HangClass::doorbell_not_rung);
  e.doorbell = end;
  Snapshot rung;
  add(rung, e, "a.ring");
  rung.words.add(kWord, 0, 4);
  CHECK(first_class(rung) == HangClass::never_written);
  rung.words.add(kWord, 1, 4);  // rung, and nothing waits: the engine executes it
  CHECK(diagnose(rung).verdict() == Verdict::healthy);
}

TEST_CASE("a text has the positions that it is given") {
  std::uint64_t end = 0;
  TextDump d{.dwords = polling_ring(end)};
  Snapshot nothing;
  add(nothing, d, "t");
  CHECK(first_class(nothing) == HangClass::unknown);
  Snapshot s;
  add(s, d, "t", {.rptr = 0, .wptr = end});
  s.words.add(kWord, 0, 4);
  CHECK(first_class(s) == HangClass::never_written);
  s.words.add(kWord, 1, 4);
  CHECK(first_class(s) != HangClass::never_written);
}

TEST_CASE("a recording shows the poll at which a queue ended") {
  trace::Recorder r;
  const auto lane = r.lane("gpu2", "engine 5 queue 0");
  std::uint64_t end = 0;
  const auto ring = polling_ring(end);
  r.queue_created(lane, 1, 1024);
  r.doorbell(lane, 2, end);
  r.packet_begin(lane, 3, 0, std::span(ring).first(6));
  r.signal(lane, 4, kWord, 0);
  Snapshot s;
  add(s, r.snapshot(), "run.jsonl");
  REQUIRE(s.queues.size() == 1);
  CHECK((s.queues[0].gpu.value.value == 2 && s.queues[0].engine.value.value == 5));
  CHECK(*s.queues[0].wptr == end);
  auto d = diagnose(s);
  CHECK(d.findings.front().what == HangClass::never_written);
  CHECK(d.findings.front().basis == Basis::guessed);  // what comes after the poll is not in the recording
  // The program gives up and destroys the queue: the poll is still the cause.
  r.queue_destroyed(lane, 5, 0);
  Snapshot given_up;
  add(given_up, r.snapshot(), "run.jsonl");
  CHECK(first_class(given_up) == HangClass::never_written);
}

TEST_CASE("a recording without doorbells shows the packet that has begun and not ended") {
  trace::Recorder r;
  const auto lane = r.lane("gpu2", "engine 5 push");
  std::uint64_t end = 0;
  const auto ring = polling_ring(end);
  r.packet_begin(lane, 3, 0, std::span(ring).first(6));
  r.signal(lane, 4, kWord, 0);
  Snapshot s;
  add(s, r.snapshot(), "run.jsonl");
  REQUIRE(s.queues.size() == 1);
  CHECK(*s.queues[0].rptr == 0);
  CHECK(*s.queues[0].wptr == 24);  // the poll was published
  CHECK_FALSE(s.queues[0].ring_bytes);
  CHECK(first_class(s) == HangClass::never_written);
  r.packet_end(lane, 5, 0);
  Snapshot ended;
  add(ended, r.snapshot(), "run.jsonl");
  CHECK(*ended.queues[0].rptr == 24);
  CHECK(*ended.queues[0].wptr == 24);
}

TEST_CASE("a recording shows faults, and queues that were destroyed under work") {
  trace::Recorder r;
  const auto lane = r.lane("gpu0", "engine 2 queue 0");
  std::vector<std::uint32_t> copy;
  put(copy, CopyLinear{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = 64});
  r.queue_created(lane, 1, 4096);
  r.doorbell(lane, 2, 28);
  r.packet_begin(lane, 3, 0, copy);
  SECTION("a fault") {
    r.fault(lane, 4, 0, r.text("unmapped"), GpuVa{0x1000});
    Snapshot s;
    add(s, r.snapshot(), "t");
    const auto d = diagnose(s);
    CHECK(d.findings.front().what == HangClass::fault);
    CHECK(d.verdict() == Verdict::hung);
  }
  SECTION("destroyed after the first packet") {
    r.packet_end(lane, 4, 0);
    r.doorbell(lane, 5, 56);
    r.queue_destroyed(lane, 6, 28);
    Snapshot s;
    add(s, r.snapshot(), "t");
    CHECK(first_class(s) == HangClass::destroyed);
  }
  SECTION("everything is executed") {
    r.packet_end(lane, 4, 0);
    r.queue_destroyed(lane, 6, 28);
    Snapshot s;
    add(s, r.snapshot(), "t");
    CHECK(first_class(s) == HangClass::healthy);
  }
}

TEST_CASE("the reason of a fault in a recording survives, and none is invented") {
  for (auto k = 1; k <= static_cast<int>(FaultKind::reset); ++k) {
    const auto kind = static_cast<FaultKind>(k);
    const auto text = describe(Fault{.kind = kind, .dword_count = 1, .va = GpuVa{0x1000}, .dwords = {0xdeadbeef}});
    CAPTURE(text);
    trace::Recorder r;
    const auto lane = r.lane("gpu0", "engine 2 queue 0");
    r.queue_created(lane, 1, 4096);
    r.doorbell(lane, 2, 28);
    r.fault(lane, 3, 16, r.text(text), GpuVa{0x1000});
    Snapshot s;
    add(s, r.snapshot(), "t");
    REQUIRE(s.queues.size() == 1);
    CHECK(s.queues[0].fault_text == text);
    const auto d = diagnose(s);
    const auto& said = d.findings.front().statements;
    CHECK(std::any_of(said.begin(), said.end(),
                      [&](const Statement& x) { return x.text.find(text) != std::string::npos; }));
    const bool access = kind == FaultKind::unmapped || kind == FaultKind::read_only;
    CHECK((d.findings.front().what == HangClass::fault) == access);
    CHECK((s.queues[0].fault.value.kind == FaultKind::unmapped) == (kind == FaultKind::unmapped));
  }
}

TEST_CASE("a gpucore file has queues, positions and rings") {
  GpuCore core;
  core.ring = polling_ring(core.wptr);
  const auto bytes = core.bytes();
  REQUIRE(is_core(bytes));
  Snapshot s;
  REQUIRE(add_core(s, bytes, "gpucore.1"));
  REQUIRE(s.queues.size() == 1);
  const auto& q = s.queues[0];
  CHECK(q.name == "gpu 1 queue 3");
  CHECK((*q.rptr == 0 && *q.wptr == core.wptr && q.ring == core.ring));
  CHECK((s.all_queues && !q.doorbell && !q.engine));
  s.words.add(kWord, 0, 4);
  CHECK(first_class(s) == HangClass::never_written);

  core.entry.exceptions = std::uint64_t{1} << 32;
  const auto violated = core.bytes();
  Snapshot t;
  REQUIRE(add_core(t, violated, "gpucore.1"));
  CHECK(first_class(t) == HangClass::fault);

  core.entry.type = 2;
  const auto compute = core.bytes();
  Snapshot none;
  REQUIRE(add_core(none, compute, "gpucore.1"));
  CHECK(none.queues.empty());
  CHECK(none.notes.size() == 1);
}

TEST_CASE("a ring in the program's own memory is in the kernel's core file") {
  GpuCore core;
  const auto ring = polling_ring(core.wptr);
  core.entry.ring = 0x7d0000000000;
  const auto gpu = core.bytes();
  core_file::Bytes contents(0x1000);
  std::memcpy(contents.data(), ring.data(), ring.size() * 4);
  const auto host = core_file::core(EM_X86_64, {}, {{0x7d0000000000, 0x1000, contents}});
  CHECK(is_gpu_core(gpu));
  CHECK_FALSE(is_gpu_core(host));
  CHECK_FALSE(is_gpu_core(std::span(gpu).first(10)));
  Snapshot s;
  REQUIRE(add_core(s, host, "core.1"));
  REQUIRE(add_core(s, gpu, "gpucore.1"));
  REQUIRE(s.queues.size() == 1);
  CHECK(s.queues[0].ring == ring);
  s.words.add(kWord, 0, 4);
  CHECK(first_class(s) == HangClass::never_written);
}

TEST_CASE("the kernel's core file lists every mapping, so an address outside is a fault") {
  GpuCore core;
  std::vector<std::uint32_t> ring;
  put(ring, CopyLinear{.src = GpuVa{0x123456789000}, .dst = GpuVa{0x7c0000000000}, .bytes = 64});
  core.wptr = ring.size() * 4;
  ring.resize(256);
  core.ring = ring;
  const auto gpu = core.bytes();
  const core_file::Segment memory{0x7d0000000000, 0x1000, core_file::Bytes(0x1000)};
  const core_file::Segment device{0x7c0000000000, 0x2000, {}};
  const auto files = core_file::files(
      {{0x7c0000000000, 0x7c0000002000, "/dev/dri/renderD128"}, {0x7d0000000000, 0x7d0000001000, "/lib/x.so"}});
  const auto with = [&](const std::vector<core_file::Segment>& segments) {
    const auto host = core_file::core(EM_X86_64, files, segments);
    Snapshot s;
    REQUIRE(add_core(s, host, "core.1"));
    REQUIRE(add_core(s, gpu, "gpucore.1"));
    return std::pair(first_class(s), s.ranges);
  };
  // The destination is in the driver's memory, and the source nowhere.
  const auto [fault, ranges] = with({device, memory});
  CHECK(fault == HangClass::fault);
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].name == "memory of the driver");
  CHECK(ranges[1].name == "x.so");
  // A debugger's core file lacks the mappings that it did not read, and says nothing about the address.
  CHECK(with({memory}).first != HangClass::fault);
}

TEST_CASE("a gpucore file whose ring is elsewhere says so") {
  GpuCore core;
  core.ring = polling_ring(core.wptr);
  core.entry.ring = 0x7d0000000000;
  const auto bytes = core.bytes();
  Snapshot s;
  REQUIRE(add_core(s, bytes, "g"));
  REQUIRE(s.notes.size() == 1);
  CHECK(s.notes[0].find("0x7d0000000000") != std::string::npos);
  CHECK(first_class(s) == HangClass::unknown);
}

TEST_CASE("a core file that is cut off anywhere is an error, or says what is missing") {
  GpuCore core;
  core.ring = polling_ring(core.wptr);
  const auto bytes = core.bytes();
  std::size_t errors = 0;
  for (std::size_t n = 4; n < bytes.size(); n += 1 + n / 50) {
    Snapshot s;
    const auto done = add_core(s, std::span(bytes).first(n), "g");
    if (!done) {
      ++errors;
      CHECK(!done.error().message.empty());
    } else {
      CHECK(!s.notes.empty());
    }
    diagnose(s);
  }
  CHECK(errors > 20);
  core.version = 9;
  const auto newer = core.bytes();
  Snapshot s;
  const auto done = add_core(s, newer, "g");
  REQUIRE(!done);
  CHECK(done.error().message.find("version 9") != std::string::npos);
}
