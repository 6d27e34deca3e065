// SPDX-License-Identifier: MIT
#include "sdma/sync/describe.hpp"

#include "sdma/packets/cache.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/wait.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <map>
#include <vector>

using namespace sdma;

namespace {

constexpr GpuVa kFlag{0x7f0000001000}, kDone{0x7f0000002000};
const CopyLinear kCopy{.src = GpuVa{0x7f1122334000}, .dst = GpuVa{0x7f5566778000}, .bytes = 4096};
const PollMem kPoll{.addr = kFlag, .func = Compare::ge, .reference = 5};
const Fence kFence{.addr = kDone, .value = 5};

/// A ring, a completion word that nobody raises, and memory of single dwords.
struct Stand {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  std::uint64_t word = 4;
  std::map<std::uint64_t, std::uint32_t> memory{{kFlag.value, 3}};

  template <Packet... P> void submit(const P&... p) { REQUIRE(ring.submit(p...) == Errc::ok); }
  StallReport stall() {
    const auto v = wait(Signal{.word = &word, .va = kDone}, Compare::ge, 5, test::past(), ring);
    REQUIRE_FALSE(v);
    return v.error();
  }
  Errc peek(GpuVa at, std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size(); i += 4) {
      const auto found = memory.find(at.value + i);
      if (found == memory.end()) return Errc::unmapped;
      std::memcpy(out.data() + i, &found->second, 4);
    }
    return Errc::ok;
  }
  std::string text() {
    return describe(stall(), [this](GpuVa a, std::span<std::byte> out) { return peek(a, out); });
  }
};

const std::string kWaited = "\n  waited for: signal 0x7f0000002000 ge 5 (value: 4)";
const std::string kPollText = "poll_mem addr=0x7f0000001000 func=ge reference=5";
const std::string kCopyText = "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000";

}  // namespace

TEST_CASE("rptr at the poll that waits") {
  Stand s;
  s.submit(kCopy, kPoll, kFence);
  s.bytes.read_to(28);
  CHECK(s.text() == "queue is at position 0x1c of 0x44; probably waiting in " + kPollText + " (value: 3)" + kWaited +
                        "\n  before:     0x0 " + kCopyText + "\n  at:         0x1c " + kPollText + " (value: 3)");
}

TEST_CASE("rptr behind the poll that waits") {
  Stand s;
  s.submit(kPoll, kCopy, kFence);
  s.bytes.read_to(24);
  CHECK(s.text() == "queue is at position 0x18 of 0x44; probably waiting in " + kPollText + " (value: 3)" + kWaited +
                        "\n  before:     0x0 " + kPollText + " (value: 3)" + "\n  at:         0x18 " + kCopyText);
}

TEST_CASE("of two polls around rptr the one that memory does not satisfy waits") {
  Stand s;
  const PollMem go{.addr = GpuVa{0x7f0000001100}, .reference = 1};
  s.memory[0x7f0000001100] = 1;
  s.submit(go, kPoll, kFence);
  s.bytes.read_to(24);
  CHECK(s.text().find("probably waiting in " + kPollText) != std::string::npos);
  s.memory = {{kFlag.value, 5}, {0x7f0000001100, 0}};
  CHECK(s.text().find("probably waiting in poll_mem addr=0x7f0000001100 func=eq reference=1 (value: 0)") !=
        std::string::npos);
  // Both wait: the first is the one that the engine met.
  s.memory[kFlag.value] = 0;
  CHECK(s.text().find("probably waiting in poll_mem addr=0x7f0000001100") != std::string::npos);
  // Neither does.
  s.memory = {{kFlag.value, 5}, {0x7f0000001100, 1}};
  CHECK(s.text() == "queue is at position 0x18 of 0x40 and has not moved; no poll near it waits" + kWaited +
                        "\n  before:     0x0 poll_mem addr=0x7f0000001100 func=eq reference=1 (value: 1)"
                        "\n  at:         0x18 " +
                        kPollText +
                        " (value: 5)"
                        "\n  hint:       possible causes: a long copy, a fault (ask the device), or another queue that "
                        "occupies the engine");
}

TEST_CASE("the mask of a poll counts") {
  Stand s;
  s.submit(PollMem{.addr = kFlag, .func = Compare::eq, .reference = 1, .mask = 1}, kFence);
  s.memory[kFlag.value] = 0x101;
  CHECK(s.text().find("never read") != std::string::npos);
  s.memory[kFlag.value] = 0x100;
  CHECK(s.text().find("probably waiting in poll_mem addr=0x7f0000001000 func=eq reference=1 mask=0x1 (value: 256)") !=
        std::string::npos);
}

TEST_CASE("a poll further on: rptr lags") {
  Stand s;
  s.submit(kCopy, kCopy, kCopy, kPoll, kFence);
  s.bytes.read_to(28);
  CHECK(s.text() == "queue is at position 0x1c of 0x7c; probably waiting in " + kPollText + " (value: 3)" + kWaited +
                        "\n  before:     0x0 " + kCopyText + "\n  at:         0x1c " + kCopyText +
                        "\n  hint:       that packet is at 0x54: rptr lags the engine");
}

TEST_CASE("a poll of memory that nobody mapped") {
  Stand s;
  s.memory.clear();
  s.submit(kPoll);
  CHECK(s.text().find("(value: no memory is mapped at this address for this GPU)") != std::string::npos);
}

TEST_CASE("without reading memory, a poll may be waiting") {
  Stand s;
  s.submit(kCopy, kPoll, kFence);
  s.bytes.read_to(28);
  CHECK(describe(s.stall()) == "queue is at position 0x1c of 0x44; perhaps waiting in " + kPollText +
                                   " (memory was not read)" + kWaited + "\n  before:     0x0 " + kCopyText +
                                   "\n  at:         0x1c " + kPollText + " (memory was not read)");
}

TEST_CASE("addresses have the names that the caller gives them") {
  Stand s;
  s.submit(kPoll);
  const auto names = [](GpuVa a) { return a == kFlag ? "host.go" : a == kDone ? "host.done" : ""; };
  CHECK(describe(
            s.stall(), [&](GpuVa a, std::span<std::byte> out) { return s.peek(a, out); }, names) ==
        "queue is at position 0x0 of 0x18; probably waiting in " + kPollText + " (host.go, value: 3)" +
            "\n  waited for: signal 0x7f0000002000 ge 5 (host.done, value: 4)" + "\n  at:         0x0 " + kPollText +
            " (host.go, value: 3)");
}

TEST_CASE("a report of a ring without a wait names no signal") {
  Stand s;
  s.submit(kPoll);
  auto r = s.stall();
  r.signal = {};
  CHECK(describe(r).find("waited for") == std::string::npos);
  CHECK(describe(s.stall()).find("waited for") != std::string::npos);
}

TEST_CASE("a poll inside an indirect buffer") {
  Stand s;
  const GpuVa base{0x7f0000004000};
  s.submit(Indirect{.base = base, .dwords = 16}, kFence);
  std::uint32_t ib[16]{};
  Writer w{ib};
  REQUIRE(put_all(w, kFence, kPoll) == Errc::ok);
  for (std::size_t i = 0; i < 16; ++i) s.memory[base.value + i * 4] = ib[i];
  CHECK(s.text().find("probably waiting in indirect base=0x7f0000004000 dwords=16, at 0x10 in its buffer: " +
                      kPollText + " (value: 3)") != std::string::npos);
  s.memory[kFlag.value] = 5;
  CHECK(s.text().find("never read") != std::string::npos);
  s.memory.erase(base.value + 60);
  CHECK(s.text().find("perhaps waiting in indirect base=0x7f0000004000 dwords=16 (its buffer was not read)") !=
        std::string::npos);
}

TEST_CASE("an engine that never read") {
  Stand s;
  s.submit(kCopy, kFence);
  CHECK(s.text() == "queue was never read: it is at position 0 of 0x2c" + kWaited + "\n  at:         0x0 " + kCopyText +
                        "\n  hint:       check that the doorbell was rung and belongs to this queue, that the queue is "
                        "mapped, and that its engine is free");
}

TEST_CASE("an empty queue whose completion did not come") {
  Stand s;
  s.submit(kCopy, kFence);
  s.bytes.read_to(44);
  CHECK(s.text() == "queue is empty: everything up to position 0x2c was consumed, but the completion did not arrive" +
                        kWaited +
                        "\n  before:     0x1c fence addr=0x7f0000002000 value=5"
                        "\n  hint:       check that the completion is in this queue and posts this signal, that the "
                        "link completes atomics, and that no fault occurred; a long copy may still be in flight");
}

TEST_CASE("an empty queue whose last packet is the poll that waits") {
  Stand s;
  s.submit(kFence, kPoll);
  s.bytes.read_to(40);
  CHECK(s.text().find("queue is at position 0x28 of 0x28; probably waiting in " + kPollText) == 0);
}

TEST_CASE("nothing was published, or a slot holds back all later ones") {
  Stand s;
  CHECK(s.text() ==
        "nothing was published to the queue" + kWaited + "\n  hint:       check that this is the right ring");
  const auto slot = s.ring.reserve(8);
  REQUIRE(slot);
  CHECK(s.text() ==
        "nothing was published to the queue" + kWaited +
            "\n  hint:       32 bytes are reserved: publish the slot, or give it back with publish(slot, 0)");
  s.ring.publish(*slot, 0);
  s.bytes.read_to(32);
  REQUIRE(s.ring.reserve(8));
  CHECK(s.text().find(
            "hint:       32 bytes are reserved and not published: an unpublished slot holds back all later ones") !=
        std::string::npos);
}

TEST_CASE("a queue that moves is slow") {
  Stand s;
  s.submit(kCopy, kCopy, kFence);
  s.bytes.read_to(28);
  auto r = s.stall();
  r.read_first = 0;
  const auto peek = [&](GpuVa a, std::span<std::byte> out) { return s.peek(a, out); };
  CHECK(describe(r, peek).find(
            "queue is slow, not stuck: it moved from position 0x0 to 0x1c of 0x48 during the wait\n") == 0);
}

TEST_CASE("dwords that are no packet") {
  Stand s;
  const auto slot = s.ring.reserve(1);
  REQUIRE(slot);
  slot->dwords.front() = 0x77;
  s.ring.publish(*slot);
  auto r = s.stall();
  CHECK(describe(r).find("queue was never read") == 0);
  CHECK(describe(r).find("hint:       an engine stops at such a dword and does not report it") != std::string::npos);
  s.submit(kFence);
  s.bytes.read_to(4);
  s.bytes.dwords[1] = 0x78;
  CHECK(s.text().find(
            "queue is at position 0x4 of 0x14, before a dword that does not begin a known packet" + kWaited +
            "\n  before:     0x0 .dword 0x00000077\n  at:         0x4 .dword 0x00000078\n  hint:       an engine "
            "stops at such a dword and does not report it") == 0);
}

TEST_CASE("packets of another generation are read as such") {
  Stand s;
  const auto slot = s.ring.reserve(11);
  AnyWriter w{slot->dwords, {Generation::v6_0}};
  REQUIRE(w.put_all(Gcr{.gl2_writeback = true}, kPoll) == Errc::ok);
  s.ring.publish(*slot);
  const auto text = [&](Generation g) {
    const auto v =
        wait(WaitCondition{Signal{.word = &s.word, .va = kDone}, Compare::ge, 5, RingView{s.ring, g}}, test::past());
    REQUIRE_FALSE(v);
    return describe(v.error(), [&](GpuVa a, std::span<std::byte> out) { return s.peek(a, out); });
  };
  CHECK(text(Generation::v6_0).starts_with("queue is at position 0x0 of 0x2c; probably waiting in " + kPollText));
  CHECK(text(Generation::v6_0).find("gcr") != std::string::npos);
  CHECK(text(kDefaultGeneration).find("gcr of 5.0 to 7.1, not of 4.4.2") != std::string::npos);
}

TEST_CASE("a packet that needs kernel privileges") {
  Stand s;
  s.submit(kFence, SrbmWrite{.reg = 1, .value = 2});
  s.bytes.read_to(16);
  CHECK(s.text().find("queue is at position 0x10 of 0x1c, before a packet that needs kernel privileges\n") == 0);
}

TEST_CASE("a packet that is longer than what is kept") {
  Stand s;
  const std::vector<std::uint32_t> data(100, 1);
  s.submit(kFence, Write{.dst = kFlag, .data = data});
  s.bytes.read_to(16);
  CHECK(s.text().find("\n  at:         0x10 write of 104 dwords, 64 available\n") != std::string::npos);
  s.bytes.read_to(s.bytes.published());
  CHECK(s.text().find("\n  before:     0x10 write of 104 dwords, 16 available\n") != std::string::npos);
}

TEST_CASE("positions that contradict each other") {
  const std::string start = "positions of the queue contradict each other: ";
  const std::string hint =
      "\n  hint:       a ring has one owner: look for a second producer, an engine that still serves a destroyed "
      "queue, or freed memory";
  Stand s;
  s.submit(kFence);
  s.bytes.read_to(20);
  CHECK(s.text() == start + "rptr 0x14 is ahead of the reserved position 0x10" + kWaited + hint);
  s.bytes.read_to(6);
  CHECK(s.text() == start + "rptr 0x6 is not a multiple of 4" + kWaited + hint);
  s.bytes.read_to(0);
  s.bytes.wptr = 0x100;
  CHECK(s.text() == start + "wptr in memory is 0x100, but 0x10 was published" + kWaited + hint);
  s.bytes.read_to(16);
  s.bytes.wptr = 8;
  CHECK(s.text() == start + "rptr 0x10 is ahead of wptr in memory, 0x8" + kWaited + hint);
  s.bytes.wptr = 0x10;
  for (int i = 0; i < 2; ++i) {
    s.submit(Nop{120});
    s.bytes.read_to(s.bytes.published());
  }
  s.submit(Nop{120});
  s.bytes.read_to(4);
  CHECK(s.text().find(start + "rptr 0x4 lags by 0x5dc bytes, but the ring has 0x400") == 0);
}

TEST_CASE("no ring, no signals, one of several") {
  Stand s;
  const Signal signal{.word = &s.word, .va = kDone};
  CHECK(describe(wait(signal, Compare::ge, 5, test::past()).error()) ==
        "nothing is known about the queue: no ring was given, or its memory cannot be a ring" + kWaited);
  CHECK(describe(wait_any({}, test::past()).error()) == "waited for any of zero signals: such a wait cannot end");
  const WaitCondition all[] = {{signal, Compare::lt, 5, {}}, {signal, Compare::eq, ~std::uint64_t{0}, s.ring}};
  CHECK(describe(wait_all(all, test::past()).error()) ==
        "nothing was published to the queue\n  waited for: 2 of 2 signals: signal 0x7f0000002000 eq 0xffffffffffffffff "
        "(value: 4)\n  hint:       check that this is the right ring");
}

TEST_CASE("a signal that arrived after the deadline") {
  Stand s;
  s.memory[kDone.value] = 5;
  s.memory[kDone.value + 4] = 0;
  CHECK(
      s.text().find("\n  waited for: signal 0x7f0000002000 ge 5 (value: 4; now 5, so it arrived after the deadline)") !=
      std::string::npos);
}

TEST_CASE("where no start of a packet is known, only a poll that waits is taken for one") {
  Stand s;
  s.submit(Nop{126});
  s.bytes.read_to(504);
  s.submit(Nop{118}, kPoll);
  s.bytes.read_to(1000);
  s.submit(kFence, Nop{2});
  s.submit(kFence);  // overwrites this lap's first packet
  CHECK_FALSE(s.stall().before_known);
  CHECK(s.text().find("probably waiting in " + kPollText + " (value: 3)" + kWaited +
                      "\n  before:     0x3d0 poll_mem") != std::string::npos);
  s.memory[kFlag.value] = 5;
  CHECK(s.text().find("before:") == std::string::npos);
}
