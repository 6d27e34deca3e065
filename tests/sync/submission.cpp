// SPDX-License-Identifier: MIT
// Submissions of any length, on rings that are read by a thread or not at all.
#include "sdma/sync/submission.hpp"

#include "sdma/stream/reader.hpp"
#include "sdma/sync/recipes.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <vector>

using namespace sdma;
using test::RingBytes;

namespace {

/// An engine that keeps what it reads, without NOPs.
class Engine {
 public:
  explicit Engine(RingBytes& r) : ring_(r), thread_([this] { run(); }) {}
  ~Engine() { stop(); }
  std::vector<std::uint32_t> stop() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
    return read_;
  }
  std::size_t doorbells() const { return doorbells_; }

 private:
  void run() {
    for (std::uint64_t at = 0;;) {
      const bool last = end_;
      const auto to = ring_.published();
      doorbells_ += to != at;
      while (at < to) {
        const auto offset = at / 4 % RingBytes::kDwords;
        const auto n = std::min<std::uint64_t>((to - at) / 4, RingBytes::kDwords - offset);
        const auto v = Reader{std::span<const std::uint32_t>(ring_.dwords).subspan(offset, n)}.next();
        if (!v.is<Nop>()) read_.insert(read_.end(), v.dwords.begin(), v.dwords.end());
        at += v.dwords.size() * 4;
      }
      ring_.read_to(at);
      if (last) return;
      std::this_thread::yield();
    }
  }

  RingBytes& ring_;
  std::atomic<bool> end_ = false;
  std::size_t doorbells_ = 0;
  std::vector<std::uint32_t> read_;
  std::thread thread_;
};

constexpr GpuVa kA{0x7f0000000000}, kB{0x7e0000000000}, kC{0x7d0000000000}, kWord{0x7c0000000000};

/// The same calls on a Writer with room for all.
template <class Calls> std::vector<std::uint32_t> whole(Calls calls) {
  std::vector<std::uint32_t> d(100000);
  Writer w{d};
  calls(w);
  REQUIRE(w.error() == Errc::ok);
  return {w.written().begin(), w.written().end()};
}

}  // namespace

TEST_CASE("reserve waits for room until the deadline, and for nothing else") {
  RingBytes r;
  Ring<> ring{r.memory()};
  CHECK(reserve(ring, 256, test::far()).error() == Errc::too_large);
  ring.publish(*reserve(ring, 200, test::past()), 0);
  const auto begin = Deadline::Clock::now();
  CHECK(reserve(ring, 100, test::soon()).error() == Errc::timed_out);
  CHECK(Deadline::Clock::now() - begin < std::chrono::seconds(20));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    r.read_to(800);
  });
  const auto slot = reserve(ring, 100, test::far());
  later.join();
  REQUIRE(slot);
  CHECK(slot->dwords.size() == 100);
}

TEST_CASE("a slot of almost the whole ring is granted once the engine has read everything") {
  RingBytes r;
  Ring<> ring{r.memory()};
  ring.publish(*ring.reserve(100), 0);
  Engine engine{r};
  const auto slot = reserve(ring, 255, test::far());
  REQUIRE(slot);
  CHECK(slot->dwords.size() == 255);
  ring.publish(*slot, 0);
}

TEMPLATE_TEST_CASE_SIG("up to half the ring: one slot, one doorbell", "", ((Producers K), K), Producers::one,
                       Producers::many) {
  RingBytes r;
  Ring<K> ring{r.memory()};
  Submission s{ring, 4 + 7 + 8, test::past()};
  CHECK(s.put(Fence{.addr = kWord, .value = 1}) == Errc::ok);
  CHECK(s.copy({.src = kA, .dst = kB, .bytes = 4096}) == Errc::ok);
  CHECK(s.with(dwords_of<Atomic>(), [](Writer& w) { return complete_with_atomic(w, kWord); }) == Errc::ok);
  CHECK(r.published() == 0);
  CHECK(s.publish() == Errc::ok);
  CHECK((s.parts() == 1 && r.published() == 19 * 4));
  CHECK(s.publish() == Errc::ok);
  CHECK((s.parts() == 1 && r.published() == 19 * 4));
}

TEMPLATE_TEST_CASE_SIG("more than half the ring: parts, in order, with nothing missing", "", ((Producers K), K),
                       Producers::one, Producers::many) {
  const auto calls = [](auto& s) {
    static_cast<void>(s.put(PollMem{.addr = kWord, .reference = 1}));
    static_cast<void>(s.copy({.src = kA, .dst = kB, .bytes = 700 * std::uint64_t{kChunk22} + 5, .chunk = kChunk22}));
    static_cast<void>(s.broadcast({.src = kA, .dst1 = kB, .dst2 = kC, .bytes = 6400 * 30 + 64, .chunk = 6400}));
    static_cast<void>(s.swap({.a = kA, .b = kB, .bytes = 6400 * 30 + 64, .chunk = 6400}));
    static_cast<void>(
        s.fill({.dst = kA, .data = 7, .bytes = 6400 * 50, .chunk = 6400, .count = FillCount::last_dword}));
    static_cast<void>(s.put(Atomic{.addr = kWord, .value = 1}));
  };
  const auto expected = whole(calls);
  RingBytes r;
  Ring<K> ring{r.memory()};
  Engine engine{r};
  const auto known = GENERATE(true, false);
  Submission s{ring, known ? expected.size() : 0, test::far()};
  calls(s);
  CHECK(s.publish() == Errc::ok);
  if (known) CHECK((s.parts() > expected.size() / 64 && s.parts() <= expected.size() / 56 + 1));
  CHECK((engine.stop() == expected));
}

TEST_CASE("what must stay together does") {
  RingBytes r;
  Ring<> ring{r.memory()};
  Submission s{ring, 200, test::past()};
  CHECK(s.fill({.dst = kA, .bytes = 12 * 64, .chunk = 64}) == Errc::ok);  // 60 of 64 dwords
  CHECK((s.together(4) == Errc::ok && s.parts() == 0));
  CHECK(s.together(5) == Errc::ok);
  CHECK((s.parts() == 1 && r.published() == 64 * 4));
  CHECK((s.together(127) == Errc::ok && s.put(Nop{127}) == Errc::ok));
  CHECK(s.together(129) == Errc::too_large);
  CHECK(s.publish() == Errc::too_large);
}

TEST_CASE("the last part takes no more room than the rest needs") {
  RingBytes r;
  Ring<> ring{r.memory()};
  Submission s{ring, 140, test::past()};
  CHECK(s.fill({.dst = kA, .bytes = 12 * 64, .chunk = 64}) == Errc::ok);  // 60 dwords, in a part of 64
  CHECK(s.put(Nop{10}) == Errc::ok);
  CHECK(ring.positions().reserved == (64 + 80) * 4);
  CHECK(s.publish() == Errc::ok);
}

TEST_CASE("after an error nothing more is written, and an open part is abandoned") {
  RingBytes r;
  Ring<> ring{r.memory()};
  SECTION("a bad packet in the only part: nothing is published but NOPs") {
    Submission s{ring, 64, test::past()};
    CHECK(s.put(Fence{.addr = kWord}) == Errc::ok);
    CHECK(s.put(Fence{.addr = GpuVa{2}}) == Errc::bad_packet);
    CHECK(s.put(Fence{.addr = kWord}) == Errc::bad_packet);
    CHECK(s.copy({.src = kA, .dst = kB, .bytes = 1}) == Errc::bad_packet);
    CHECK(s.publish() == Errc::bad_packet);
    CHECK(s.parts() == 0);
  }
  SECTION("a recipe that fails") {
    Submission s{ring, 64, test::past()};
    CHECK(s.with(dwords_of<PollMem>(), [](Writer& w) { return acquire(w, GpuVa{2}, 1); }) == Errc::bad_packet);
    CHECK(s.publish() == Errc::bad_packet);
  }
  SECTION("a long request is checked as a whole before its first packet") {
    Submission s{ring, 0, test::past()};
    CHECK(s.copy({.src = GpuVa{0 - 6400ull}, .dst = kB, .bytes = 64000, .chunk = 64}) == Errc::bad_packet);
    CHECK((s.publish() == Errc::bad_packet && ring.positions().reserved == 0));
  }
  SECTION("no room until the deadline") {
    Submission s{ring, 400, test::soon()};
    CHECK(s.fill({.dst = kA, .bytes = 80 * 64, .chunk = 64}) == Errc::timed_out);
    CHECK(s.publish() == Errc::timed_out);
    CHECK(s.parts() == 3);
    r.read_to(r.published());
  }
  SECTION("it is never published") {
    Submission s{ring, 64, test::past()};
    CHECK(s.put(Fence{.addr = kWord}) == Errc::ok);
  }
  SECTION("no ring") {
    Ring<> none{RingMemory{}};
    Submission s{none, 64, test::far()};
    CHECK(s.put(Fence{.addr = kWord}) == Errc::bad_ring);
  }
  const auto p = ring.positions();
  CHECK(p.committed == p.reserved);
  std::size_t nops = 0, others = 0;
  for (Reader reader{std::span<const std::uint32_t>(r.dwords).first(p.committed / 4 % 256)}; reader;)
    ++(reader.next().is<Nop>() ? nops : others);
  CHECK((others == 0 || others == 36));
  CHECK(ring.reserve(100).has_value());
}
