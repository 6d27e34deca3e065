// SPDX-License-Identifier: MIT
// Reports of waits that gave up, on rings whose engine is a test: each with the diagnosis that belongs to it.
#include "sdma/doctor/snapshot.hpp"

#include "../sync/support.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <map>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;
using doctor::diagnose;
using doctor::HangClass;
using doctor::snapshot_of;
using doctor::Verdict;

namespace {

constexpr GpuVa kFlag{0x7f0000001000}, kDone{0x7f0000002000};
const CopyLinear kCopy{.src = GpuVa{0x7f1122334000}, .dst = GpuVa{0x7f5566778000}, .bytes = 4096};
const PollMem kPoll{.addr = kFlag, .func = Compare::ge, .reference = 5};
const Fence kFence{.addr = kDone, .value = 5};

struct Waiter {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  std::uint64_t word = 4;
  std::map<std::uint64_t, std::uint32_t> memory{{kFlag.value, 3}, {kDone.value, 4}, {kDone.value + 4, 0}};

  template <Packet... P> void submit(const P&... p) { REQUIRE(ring.submit(p...) == Errc::ok); }
  doctor::Diagnosis diagnosis(bool with_peek = true, std::chrono::nanoseconds waited = 5s) {
    const auto v = wait(Signal{.word = &word, .va = kDone}, Compare::ge, 5, test::past(), ring);
    REQUIRE_FALSE(v);
    const auto peek = [this](GpuVa at, std::span<std::byte> out) {
      for (std::size_t i = 0; i < out.size(); i += 4) {
        const auto found = memory.find(at.value + i);
        if (found == memory.end()) return Errc::unmapped;
        std::memcpy(out.data() + i, &found->second, 4);
      }
      return Errc::ok;
    };
    return diagnose(snapshot_of(v.error(), with_peek ? Peek(peek) : Peek(), waited));
  }
};

}  // namespace

TEST_CASE("a report's queue at a poll, or just past it") {
  for (const std::uint64_t read : {28u, 52u}) {
    Waiter s;
    s.submit(kCopy, kPoll, kFence);
    s.bytes.read_to(read);
    const auto d = s.diagnosis();
    INFO(to_text(d));
    CHECK(d.verdict() == Verdict::waits);
    CHECK(d.findings.front().what == HangClass::never_written);
    REQUIRE(d.findings.front().at);
    CHECK(d.findings.front().at->position == 28);
    CHECK(summary(d).find("It waits for 0x7f0000001000 ge 5; the word holds 3.") != std::string::npos);
    // The thread waits for the fence behind the poll.
    REQUIRE(d.findings.size() == 2);
    CHECK(d.findings[1].what == HangClass::follows);
  }
}

TEST_CASE("a report without memory, without a known time, or of a queue that moves, is no verdict") {
  Waiter s;
  s.submit(kCopy, kPoll, kFence);
  s.bytes.read_to(28);
  CHECK(s.diagnosis(false).verdict() == Verdict::undecided);
  CHECK(s.diagnosis(true, {}).verdict() == Verdict::undecided);
  s.memory[kFlag.value] = 5;
  CHECK(s.diagnosis().findings.front().what != HangClass::never_written);
  s.memory[kFlag.value] = 3;
  const auto v = wait(Signal{.word = &s.word, .va = kDone}, Compare::ge, 5, test::past(), s.ring);
  auto moving = v.error();
  moving.read_first = 0;
  CHECK(diagnose(snapshot_of(moving, {}, 5s)).verdict() != Verdict::hung);
}

TEST_CASE("a report of a queue that has executed everything: the completion is missing") {
  Waiter s;
  s.submit(kCopy);
  s.bytes.read_to(28);
  const auto d = s.diagnosis();
  CHECK(d.findings.front().what == HangClass::never_written);
  CHECK_FALSE(d.findings.front().queue);
  s.submit(Fence{.addr = kDone, .value = 4});
  s.bytes.read_to(44);
  CHECK(s.diagnosis().findings.front().what == HangClass::wrong_value);
}

TEST_CASE("a report of a queue that no engine has read") {
  Waiter s;
  s.submit(kCopy, kFence);
  CHECK(s.diagnosis().findings.front().what == HangClass::doorbell_not_rung);
}

TEST_CASE("a report of a dword that begins no packet") {
  Waiter s;
  s.submit(kCopy, kFence);
  const auto v = wait(Signal{.word = &s.word, .va = kDone}, Compare::ge, 5, test::past(), s.ring);
  auto r = v.error();
  r.head[0] = 0xdeadbeef;
  CHECK(diagnose(snapshot_of(r, {}, 5s)).findings.front().what == HangClass::header_overwritten);
  r.head[1] = r.head[2] = 0xdeadbeef;
  CHECK(diagnose(snapshot_of(r, {}, 5s)).findings.front().what == HangClass::unknown_opcode);
}

TEST_CASE("what follows the dwords of a report is not known, so nothing is ruled out") {
  Waiter s;
  s.submit(kPoll);
  for (int i = 0; i < 12; ++i) s.submit(kCopy);
  s.submit(Fence{.addr = kFlag, .value = 5});
  const auto d = s.diagnosis();
  CHECK(d.findings.front().what == HangClass::never_written);
  CHECK(d.verdict() == Verdict::undecided);
}

TEST_CASE("a packet before rptr that is longer than what is kept of it") {
  Waiter s;
  const std::vector<std::uint32_t> data(40, 7);
  s.submit(Write{.dst = kFlag, .data = data});
  s.bytes.read_to(s.ring.positions().committed);
  s.submit(kPoll, kFence);
  const auto d = s.diagnosis();
  INFO(to_text(d));
  CHECK(d.findings.front().what == HangClass::never_written);
  CHECK(d.queues.front().near.front().part == doctor::Part::at_rptr);
}

TEST_CASE("a report without a ring is about the thread alone") {
  std::uint64_t word = 4;
  const auto v = wait(Signal{.word = &word, .va = kDone}, Compare::ge, 5, test::past());
  REQUIRE_FALSE(v);
  const auto s = snapshot_of(v.error());
  CHECK(s.queues.empty());
  REQUIRE(s.waits.size() == 1);
  CHECK(diagnose(s).verdict() != Verdict::healthy);
}
