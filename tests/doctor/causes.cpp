// SPDX-License-Identifier: MIT
// What a diagnosis names beside the class: the copy that brought a value, the NOP that covers a fence, the queue whose
// doorbell was rung, the low bits of an address, the ring that the driver gave up on, memory that was lost.
#include "scene.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;
using namespace sdma::test;
using doctor::Basis;
using doctor::HangClass;
using doctor::Source;
using doctor::Verdict;

namespace {

bool says(const doctor::Diagnosis& d, std::string_view part) { return summary(d).find(part) != std::string::npos; }

/// A queue of 1 KiB in its first lap, that stands at the first of its dwords.
doctor::QueueSnapshot first_lap(std::string name, std::vector<std::uint32_t> dwords) {
  doctor::QueueSnapshot q{.name = std::move(name), .rptr = {0, Source::memory}};
  q.wptr = {dwords.size() * 4, Source::memory};
  q.rptr_first = q.rptr;
  dwords.resize(256);
  q.ring = std::move(dwords);
  return q;
}
template <class... P> std::vector<std::uint32_t> dwords_of(const P&... packets) {
  std::vector<std::uint32_t> out;
  const auto add = [&](const auto& p) {
    const auto n = out.size();
    out.resize(n + length(p));
    encode_to(p, out.data() + n);
  };
  (add(packets), ...);
  return out;
}
doctor::Snapshot watched(std::vector<doctor::QueueSnapshot> queues) {
  doctor::Snapshot s;
  s.queues = std::move(queues);
  s.all_queues = true;
  s.watched_ns = 5'000'000'000;
  return s;
}

constexpr GpuVa kFlag{0x7f0000001000}, kSource{0x7f0000009000}, kOther{0x7f0000005000};

}  // namespace

TEST_CASE("the queue that faults comes before those that the driver stopped with it") {
  Scene s{21};
  for (int i = 0; i < 3; ++i) {
    auto& q = s.queue();
    q.gpu = 0;
    q.stand(q.put(Fence{.addr = s.word(), .value = 1}));
  }
  auto& culprit = s.queue();
  culprit.gpu = 0;
  const GpuVa page{0x7abc00000000};
  culprit.stand(culprit.put(CopyLinear{.src = page, .dst = s.data(1), .bytes = 4096}));
  auto snapshot = s.snapshot(Form::node);
  snapshot.page_faults.push_back({.page = page, .gpu = {GpuId{0}, Source::driver}, .process = 7, .from = "dmesg"});
  const auto d = diagnose(snapshot);
  REQUIRE(d.findings.size() == 4);
  for (const auto& f : d.findings) CHECK(f.what == HangClass::fault);
  CHECK(d.findings[0].queue == 3);
  CHECK(d.findings[0].basis == Basis::seen);
  CHECK(says(d, "This packet touches the page"));
}

TEST_CASE("a value that a copy brought is what its source held when it was copied") {
  for (const int now : {1, 0, -1}) {
    auto a = first_lap("a", dwords_of(PollMem{.addr = kFlag, .reference = 1}));
    auto b = first_lap("b", dwords_of(CopyLinear{.src = kSource, .dst = GpuVa{kFlag.value - 0x100}, .bytes = 4096}));
    b.rptr = b.rptr_first = b.wptr;
    auto s = watched({a, b});
    s.words.add(kFlag, 0, 4);
    if (now >= 0) s.words.add(kSource + 0x100, static_cast<std::uint64_t>(now), 4);
    const auto d = diagnose(s);
    INFO(to_text(d));
    CHECK(d.findings.front().what == HangClass::wrong_value);
    CHECK(d.verdict() == Verdict::hung);
    CHECK(says(d, "brought the value: its source 0x7f0000009100 held 0 when it was copied."));
    CHECK(says(d, "The source holds 1 now: the copy came before the value that the wait needs.") == (now == 1));
  }
  // A fence that stored the value is what did.
  auto a = first_lap("a", dwords_of(PollMem{.addr = kFlag, .reference = 9}));
  auto b =
      first_lap("b", dwords_of(CopyLinear{.src = kSource, .dst = kFlag, .bytes = 4}, Fence{.addr = kFlag, .value = 3}));
  b.rptr = b.rptr_first = b.wptr;
  auto s = watched({a, b});
  s.words.add(kFlag, 3, 4);
  CHECK(!says(diagnose(s), "brought the value"));
}

TEST_CASE("a NOP whose count covers the fence is named") {
  auto ring = dwords_of(Nop{}, Fence{.addr = kFlag, .value = 1}, Fence{.addr = kOther, .value = 2});
  ring[0] = 4u << 16;
  auto a = first_lap("a", dwords_of(PollMem{.addr = kFlag, .reference = 1}));
  auto b = first_lap("b", ring);
  b.rptr = b.rptr_first = b.wptr;
  auto s = watched({a, b});
  s.words.add(kFlag, 0, 4);
  s.words.add(kOther, 2, 4);
  const auto d = diagnose(s);
  INFO(to_text(d));
  CHECK(d.findings.front().what == HangClass::never_written);
  CHECK(d.verdict() == Verdict::hung);
  CHECK(says(d, "The NOP of b at 0x0 has 5 dwords, and covers 0x4: fence addr=0x7f0000001000 value=1."));
  // In a later lap, the payload may be what was there before.
  s.queues[1].rptr.value = s.queues[1].rptr_first.value = s.queues[1].wptr.value += 1024;
  CHECK(diagnose(s).verdict() == Verdict::undecided);
  // Another value.
  s.queues[1].ring[4] = 5;
  CHECK(!says(diagnose(s), "The NOP of b"));
}

TEST_CASE("a NOP whose count covers the header of a packet is named") {
  constexpr GpuVa kWord{0x7f0000001040};  // its low half begins no packet
  auto ring =
      dwords_of(Nop{}, Fence{.addr = kWord, .value = 9}, CopyLinear{.src = kSource, .dst = kOther, .bytes = 64});
  ring[0] = 1u << 16;
  const auto d = diagnose(watched({first_lap("a", ring)}));
  INFO(to_text(d));
  CHECK(d.findings.front().what == HangClass::unknown_opcode);
  CHECK(d.verdict() == Verdict::hung);
  CHECK(says(d,
             "The NOP at 0x0 has 2 dwords, and the last 1 of them begin a packet: fence addr=0x7f0000001040 "
             "value=9."));
  // If the rest is garbage with that header, too, the NOP is not blamed.
  ring[5] = 0xdeadbeef;
  CHECK(!says(diagnose(watched({first_lap("a", ring)})), "The NOP at"));
}

TEST_CASE("a doorbell that was rung for another queue is named, in both") {
  const auto work = dwords_of(Fence{.addr = kFlag, .value = 1}, Fence{.addr = kFlag, .value = 2});
  for (const bool readable : {true, false}) {
    auto a = first_lap("a", work), b = first_lap("b", {});
    if (readable) {
      a.doorbell = {0, Source::node};
      b.doorbell = {work.size() * 4, Source::node};
    } else {
      b.rptr = b.rptr_first = {work.size() * 4, Source::memory};
    }
    const auto d = diagnose(watched({a, b}));
    const auto text = to_text(d);
    INFO(text);
    REQUIRE(d.findings.size() == 2);
    for (const auto& f : d.findings) {
      CHECK(f.what == (f.queue == 0 ? HangClass::doorbell_not_rung : HangClass::wptr_not_stored));
      CHECK(f.to_do == "ring the doorbell of the queue whose wptr was stored: each queue has its own");
    }
    CHECK(d.verdict() == Verdict::hung);
    b.wptr.value = 8, b.doorbell.value = 8, b.rptr.value = b.rptr_first.value = 0;
    for (const auto& f : diagnose(watched({a, b})).findings)
      CHECK(f.to_do.find("each queue has its own") == std::string::npos);
  }
}

TEST_CASE("the low bits of a poll's address are named") {
  for (const bool there : {true, false}) {
    auto a = first_lap("a", dwords_of(PollMem{.addr = kFlag, .reference = 5}));
    a.ring[1] |= 2;
    auto s = watched({a});
    s.words.add(kFlag, there ? 5 : 0, 8);
    const auto d = diagnose(s);
    INFO(to_text(d));
    CHECK(says(d, "The address 0x7f0000001002 is not a multiple of 4: its low bits select no word"));
    CHECK(d.findings.front().what == (there ? HangClass::wrong_word : HangClass::never_written));
    CHECK(says(d, "To do: wait for 0x7f0000001000.") == there);
    CHECK(d.verdict() == (there ? Verdict::hung : Verdict::waits));
  }
}

TEST_CASE("a ring that its file calls timed out hangs, and no doorbell is blamed") {
  const auto work = dwords_of(CopyLinear{.src = kSource, .dst = kOther, .bytes = 64}, Fence{.addr = kFlag, .value = 1});
  auto ring = first_lap("f sdma1.0", work), beside = first_lap("f sdma0.0", work), other = first_lap("g sdma1.0", work);
  auto s = watched({ring, beside, other});
  s.watched_ns = 0;
  s.events.push_back({.ring = "sdma1.0", .said = "IP Type: 2 Ring Name: sdma1.0", .from = "f"});
  const auto d = diagnose(s);
  INFO(to_text(d));
  REQUIRE(d.findings.size() == 3);
  CHECK(d.findings[0].queue == 0);
  CHECK(d.verdict(d.findings[0]) == Verdict::hung);
  CHECK(says(d, "Hung: the reason is not known. f sdma1.0 is at position 0x0"));
  CHECK(says(d, "Ring sdma1.0 of the driver timed out at its first packet."));
  for (const auto& f : d.findings)
    CHECK((f.what == HangClass::doorbell_not_rung) == (f.queue == 2));  // a ring of another file
  // Nothing is pending any more: it may have been late.
  s.queues[0].rptr = s.queues[0].wptr;
  CHECK(diagnose(s).verdict() == Verdict::undecided);
}

TEST_CASE("memory that was lost comes before everything else") {
  auto s = watched({first_lap("a", dwords_of(PollMem{.addr = kFlag, .reference = 1}))});
  s.words.add(kFlag, 0, 4);
  s.events.push_back({.said = "VRAM is lost due to GPU reset!", .means = "No copy is whole.", .from = "f"});
  for (const bool queue : {true, false}) {
    if (!queue) s.queues.clear(), s.all_queues = false;
    const auto d = diagnose(s);
    CHECK(d.findings.front().statements.front().text == "f: \"VRAM is lost due to GPU reset!\". No copy is whole.");
  }
}
