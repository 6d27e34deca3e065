// SPDX-License-Identifier: MIT
// After the reset of an engine: which packets are done, repeated, sent and held, by what is known; and that a ring that
// is built again completes what the first one began, exactly once.
#include "sdma/queue/reset.hpp"

#include <map>
#include <string>
#include <vector>

#include "memory.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/writer.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

constexpr GpuVa kA{0x100000}, kB{0x200000}, kC{0x300000}, kDone{0x400000}, kCount{0x400100};

CopyLinear copy(GpuVa src, GpuVa dst) { return {.src = src, .dst = dst, .bytes = 4096}; }
Fence fence(std::uint32_t value, GpuVa word = kDone) { return {.addr = word, .value = value}; }
Atomic add() { return {.addr = kCount, .value = 1}; }

/// A ring whose packets are noted as they are put.
struct Sent {
  test::Memory memory{1024};
  std::size_t n = 0;
  std::vector<std::uint64_t> at{};

  template <class... P> explicit Sent(const P&... p) { (put(p), ...); }
  template <class P> void put(const P& p) {
    at.push_back(n * 4);
    Writer w{memory.dwords.subspan(n)};
    REQUIRE(w.put(p) == Errc::ok);
    n += w.position_dwords();
  }
  std::uint64_t end() const { return n * 4; }
  std::uint64_t end_of(std::size_t packet) const { return packet + 1 < at.size() ? at[packet + 1] : end(); }
  ResetQueue queue(std::uint64_t rptr) const { return {.ring = memory.dwords, .rptr = rptr, .wptr = end()}; }
};

/// "repeat hold ...", a letter for each packet.
std::string fates(const ResetQueue& q, ResetReport* report = nullptr) {
  std::string s;
  const auto r = after_reset(q, [&](const ResetPacket& p) { s += name(p.fate)[0]; });
  if (report) *report = r;
  return s;
}

}  // namespace

TEST_CASE("nothing is called whole of which nothing is known") {
  const Sent s(copy(kA, kB), fence(1));
  const auto unknown = [](const ResetQueue& q) {
    const auto r = after_reset(q);
    CHECK(r.state == ResetReport::State::unknown);
    CHECK_FALSE(r.why.empty());
    CHECK(rebuild(q, std::span<std::uint32_t>{}).error() == Errc::unknown);
  };
  unknown({});
  unknown({.ring = s.memory.dwords});
  unknown({.ring = s.memory.dwords, .wptr = s.end()});
  unknown({.ring = s.memory.dwords, .rptr = 0});
  unknown({.rptr = s.end(), .wptr = s.end()});
  unknown({.ring = s.memory.dwords, .rptr = s.end() + 4, .wptr = s.end()});
  unknown({.ring = s.memory.dwords, .rptr = 4096, .wptr = 4100});  // wrapped, and no completion was seen
  unknown({.ring = s.memory.dwords, .rptr = 0, .wptr = s.end(), .landed = s.end() + 4});
  unknown({.ring = s.memory.dwords, .rptr = 0, .wptr = s.end(), .landed = s.end(), .not_landed = 0});
  unknown({.ring = s.memory.dwords, .rptr = 0, .wptr = s.end() - 4});  // a packet is cut off
  unknown({.ring = s.memory.dwords.first(1000), .rptr = 0, .wptr = s.end()});
  unknown({.ring = s.memory.dwords, .rptr = s.end(), .wptr = s.end() + 4});  // what is no packet was published
}

TEST_CASE("rptr proves nothing done: a completion that was seen does") {
  const Sent s(copy(kA, kB), fence(1));
  auto q = s.queue(s.end());
  CHECK(fates(q) == "rr");
  q.landed = s.end();
  ResetReport r;
  CHECK(fates(q, &r).empty());
  CHECK(r.state == ResetReport::State::whole);
  CHECK(after_reset({.ring = s.memory.dwords, .rptr = 0, .wptr = 0}).state == ResetReport::State::whole);
}

TEST_CASE("interrupted copies are repeated, and atomics are not") {
  const Sent s(copy(kA, kB), fence(1), copy(kA, kC), add());
  auto q = s.queue(s.end());
  q.landed = s.end_of(1);
  ResetReport r;
  CHECK(fates(q, &r) == "rh");
  CHECK(r.state == ResetReport::State::decide);
  CHECK(r.from == s.at[2]);
  CHECK((r.repeat == 1 && r.held == 1 && r.dwords == 7));
  std::uint32_t out[64];
  CHECK(*rebuild(q, out) == 7);
  CHECK(*rebuild(q, out, [](const ResetPacket& p) { return is<Atomic>(*p.info); }) == 15);
  CHECK(rebuild(q, std::span(out).first(6)).error() == Errc::too_large);
}

TEST_CASE("an atomic after a completion that is missing was not executed") {
  const Sent s(copy(kA, kB), fence(1), add(), fence(2), add());
  auto q = s.queue(s.end());
  CHECK(fates(q) == "rrhrh");
  q.landed = s.end_of(1);
  q.not_landed = s.at[3];
  CHECK(fates(q) == "hss");  // the fence and the atomic after it; the one before may have been
}

TEST_CASE("rptr lags, unless the driver saved it: what is after it may have begun") {
  const Sent s(copy(kA, kB), copy(kA, kC), add());
  auto q = s.queue(s.at[1]);
  CHECK(fates(q) == "rrh");
  q.rptr_exact = true;
  ResetReport r;
  CHECK(fates(q, &r) == "rrs");  // the packet at rptr may have begun
  CHECK(r.state == ResetReport::State::again);
  CHECK(r.begun == s.at[2]);
  q.rptr = s.at[0];
  CHECK(fates(q) == "rss");
}

TEST_CASE("a poll that the engine has passed was met; the one before rptr may still wait") {
  const Sent s(PollMem{.addr = kDone, .func = Compare::ge, .reference = 1}, copy(kA, kB), fence(2));
  CHECK(fates(s.queue(s.end())) == "drr");
  CHECK(fates(s.queue(s.at[1])) == "rrr");
  CHECK(fates(s.queue(0)) == "rrr");
}

TEST_CASE("what is not the same if it is executed twice is held") {
  CHECK(fates(Sent(CopySwap{.a = kA, .b = kB, .bytes = 64}).queue(28)) == "h");
  CHECK(fates(Sent(MemIncr{.addr = kCount}).queue(0)) == "h");
  CHECK(fates(Sent(Semaphore{.addr = kCount, .signal = true}).queue(0)) == "h");
  CHECK(fates(Sent(copy(kA, kA + 64)).queue(0)) == "h");  // it overwrites its own source
  CHECK(fates(Sent(copy(kA, kA + 4096)).queue(0)) == "r");
  CHECK(fates(Sent(Fill{.dst = kA, .data = 1, .bytes = 63}).queue(0)) == "r");
  CHECK(fates(Sent(Timestamp{.addr = kDone}).queue(0)) == "r");
  CHECK(fates(Sent(Trap{}).queue(0)) == "r");
  CHECK(fates(Sent(Indirect{.base = kA, .dwords = 8}).queue(0)) == "h");
}

TEST_CASE("a copy whose source a later one may have overwritten is held") {
  const Sent s(copy(kA, kB), copy(kC, kA));
  auto q = s.queue(s.end());
  CHECK(fates(q) == "hr");
  q = s.queue(0);
  q.rptr_exact = true;
  CHECK(fates(q) == "rs");  // the later one has not begun
}

TEST_CASE("what a condition in doubt governs is held, and not what follows") {
  const Sent s(CondExec{.addr = kDone, .reference = 1, .dwords = 7}, copy(kA, kB), copy(kA, kC));
  CHECK(fates(s.queue(s.end())) == "hhr");
  auto q = s.queue(0);
  q.rptr_exact = true;
  CHECK(fates(q) == "hhs");
}

TEST_CASE("packets of the ring's generation, across its end") {
  test::Memory memory(256);
  const auto start = std::uint64_t{256 - 7} * 4;
  Writer tail{memory.dwords.subspan(256 - 7)}, head{memory.dwords};
  REQUIRE(tail.put(copy(kA, kB)) == Errc::ok);
  REQUIRE(head.put(fence(3)) == Errc::ok);
  const ResetQueue q{.ring = memory.dwords, .rptr = 1024 + 16, .wptr = 1024 + 16, .landed = start};
  CHECK(fates(q) == "rr");
  std::uint32_t out[16];
  REQUIRE(*rebuild(q, out) == 11);
  CHECK(Reader{std::span(out).first(11)}.next().is<CopyLinear>());

  test::Memory later(256);
  AnyWriter w{later.dwords, {Generation::v6_0}};
  REQUIRE(w.put(copy(kA, kB)) == Errc::ok);
  REQUIRE(w.put(add()) == Errc::ok);
  CHECK(fates({.ring = later.dwords, .generation = Generation::v6_0, .rptr = 0, .wptr = w.position_dwords() * 4}) ==
        "rh");
}

TEST_CASE("after a packet whose length sources dispute, nothing is taken for a packet") {
  std::vector<std::uint32_t> ring(64);
  for (const auto head : {0x40bu, 0x10fu}) {  // fill_page, fence_interrupt
    ring[0] = head;
    const ResetQueue q{.ring = ring, .generation = Generation::v7_1, .rptr = 0, .wptr = 128};
    const auto r = after_reset(q);
    INFO(head);
    CHECK(r.state == ResetReport::State::unknown);
    CHECK_FALSE(r.why.empty());
  }
}

TEST_CASE("the words of fences say what has landed, and what has not") {
  const Sent s(copy(kA, kB), fence(1), copy(kA, kC), fence(2), add(), fence(3));
  std::map<std::uint64_t, std::uint32_t> words{{kDone.value, 2}};
  const auto load = [&](GpuVa at, std::uint32_t& w) {
    const auto found = words.find(at.value);
    return found != words.end() && (w = found->second, true);
  };
  auto q = completions(s.queue(s.end()), load);
  CHECK(q.landed == s.end_of(3));
  CHECK(q.not_landed == s.at[5]);
  CHECK(fates(q) == "hs");
  words[kDone.value] = 0;
  q = completions(s.queue(s.end()), load);
  CHECK_FALSE(q.landed);
  CHECK(q.not_landed == s.at[1]);
  CHECK(fates(q) == "rsrsss");
  words[kDone.value] = 3;
  CHECK(after_reset(completions(s.queue(s.end()), load)).state == ResetReport::State::whole);
  words.clear();
  q = completions(s.queue(s.end()), load);
  CHECK((!q.landed && !q.not_landed));
}

TEST_CASE("the ring that is built again completes each packet that the reset interrupted") {
  // Every point at which a reset may come: after `landed` releases have landed, with rptr anywhere from there on.
  const Sent s(copy(kA, kB), fence(1), copy(kA, kC), fence(2), copy(kB, kC + 4096), fence(3));
  for (std::uint32_t reached = 0; reached <= 3; ++reached)
    for (std::size_t at = std::size_t{2} * reached; at <= 6; ++at) {
      const auto rptr = at < 6 ? s.at[at] : s.end();
      const auto q = completions(s.queue(rptr), [&](GpuVa, std::uint32_t& w) { return w = reached, true; });
      test::Memory fresh(1024);
      Ring<> ring{fresh.ring()};
      const auto n = send_again(q, ring);
      REQUIRE(n);
      CHECK(*n == s.n - std::size_t{11} * reached);
      CHECK(fresh.wptr == *n * 4);
      std::uint32_t next = reached;
      for (Reader r{fresh.dwords.first(*n)}; r;) {
        const auto p = r.next();
        if (p.is<Fence>()) CHECK(decode<Fence>(p.dwords).value == ++next);
        else CHECK(p.is<CopyLinear>());
      }
      CHECK(next == 3);
    }
}
