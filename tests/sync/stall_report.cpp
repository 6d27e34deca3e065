// SPDX-License-Identifier: MIT
#include "sdma/sync/stall_report.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"
#include "sdma/stream/reader.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <vector>

using namespace sdma;

namespace {

const PollMem kPoll{.addr = GpuVa{0x7f0000001000}, .func = Compare::ge, .reference = 5};
const Fence kFence{.addr = GpuVa{0x7f0000001000}, .value = 1};
const CopyLinear kCopy{.src = GpuVa{0x10000}, .dst = GpuVa{0x20000}, .bytes = 64};

/// An engine that reads a dword at each look at rptr, `looks` times.
struct Moving : order::Native {
  static inline const std::uint64_t* rptr = nullptr;
  static inline int looks = 0;
  static std::uint64_t load(const std::uint64_t* word, std::memory_order o) noexcept {
    if (word == rptr && looks > 0 && looks-- > 0) *const_cast<std::uint64_t*>(word) += 4;
    return Native::load(word, o);
  }
};

}  // namespace

TEST_CASE("a report has the positions, and the packets on both sides of rptr") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(kFence, kCopy) == Errc::ok);
  REQUIRE(ring.submit(kPoll, kFence) == Errc::ok);
  bytes.read_to(44);  // behind fence and copy
  const auto slot = ring.reserve(4);
  REQUIRE(slot);
  const auto r = inspect(ring);
  CHECK(r.ring_bytes == 1024);
  CHECK(r.read == 44);
  CHECK(r.read_first == 44);
  CHECK(r.committed == 84);
  CHECK(r.reserved == 100);
  CHECK(r.wptr == 84);
  CHECK(r.has_doorbell);
  CHECK_FALSE(r.moved);
  REQUIRE(r.head_dwords == 10);
  CHECK(decode<PollMem>(r.head_span()).reference == 5);
  CHECK(r.before_known);
  REQUIRE(r.before_dwords == 7);
  CHECK(decode<CopyLinear>(r.before_span()).bytes == 64);
  ring.publish(*slot, 0);
}

TEST_CASE("before the first packet there is none") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(kPoll) == Errc::ok);
  const auto r = inspect(ring);
  CHECK(r.before_dwords == 0);
  CHECK_FALSE(r.before_known);
  CHECK(r.head_dwords == 6);
}

TEST_CASE("of a long packet before rptr the beginning is kept") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  const std::vector<std::uint32_t> data(40, 0x77);
  REQUIRE(ring.submit(kFence, Write{.dst = GpuVa{0x1000}, .data = data}) == Errc::ok);
  bytes.read_to(bytes.published());
  const auto r = inspect(ring);
  CHECK(r.before_known);
  REQUIRE(r.before_dwords == StallReport::kBefore);
  const auto v = Reader{r.before_span()}.next();
  REQUIRE(v.info == &info_of<Write>());
  CHECK(v.cut_off);
  CHECK(v.info->length(v.dwords.data()) == 44);
}

TEST_CASE("no more of the head is kept than there is room for") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(Nop{100}) == Errc::ok);
  CHECK(inspect(ring).head_dwords == StallReport::kHead);
}

TEST_CASE("dwords are followed around the ring's end") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(Nop{126}) == Errc::ok);
  bytes.read_to(504);
  REQUIRE(ring.submit(Nop{124}) == Errc::ok);  // up to 6 dwords before the end
  bytes.read_to(1000);
  REQUIRE(ring.submit(kPoll) == Errc::ok);  // the last 6
  REQUIRE(ring.submit(kFence) == Errc::ok);
  const auto overwritten = inspect(ring);
  CHECK(overwritten.head_dwords == 10);
  CHECK(decode<Fence>(overwritten.head_span().subspan(6)).value == 1);
  // The fence lies where this lap's first packet did: what precedes rptr has no known start any more.
  CHECK_FALSE(overwritten.before_known);
  CHECK(overwritten.before_dwords == StallReport::kBefore);

  bytes.read_to(1024);
  const auto raw = inspect(ring);
  CHECK_FALSE(raw.before_known);
  REQUIRE(raw.before_dwords == StallReport::kBefore);
  CHECK(decode<PollMem>(raw.before_span().last(6)).reference == 5);
}

TEST_CASE("behind the last packet of a lap that is whole, the packet is known") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(Nop{126}) == Errc::ok);
  bytes.read_to(504);
  REQUIRE(ring.submit(Nop{124}) == Errc::ok);
  REQUIRE(ring.submit(kPoll) == Errc::ok);
  bytes.read_to(1024);
  const auto r = inspect(ring);
  CHECK(r.head_dwords == 0);
  CHECK(r.before_known);
  REQUIRE(r.before_dwords == 6);
  CHECK(decode<PollMem>(r.before_span()).reference == 5);
}

TEST_CASE("dwords that are no longer this lap's are left out") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(Nop{120}) == Errc::ok);
  bytes.read_to(480);
  REQUIRE(ring.submit(Nop{128}) == Errc::ok);
  bytes.read_to(992);
  const auto slot = ring.reserve(2);  // fits before the end
  const auto next = ring.reserve(128), last = ring.reserve(119);
  REQUIRE((slot && next && last));
  // A dword is free, and 4 bytes before rptr are not overwritten yet.
  const auto r = inspect(ring);
  CHECK(r.reserved - r.read < r.ring_bytes);
  CHECK_FALSE(r.before_known);
  CHECK(r.before_dwords == (r.read - (r.reserved - r.ring_bytes)) / 4);
  CHECK(r.before_dwords < StallReport::kBefore);
}

TEST_CASE("positions that cannot be are reported, and no dword is taken by them") {
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  REQUIRE(ring.submit(kPoll) == Errc::ok);
  bytes.read_to(28);
  auto r = inspect(ring);
  CHECK(r.read == 28);
  CHECK(r.reserved == 24);
  CHECK((r.head_dwords == 0 && r.before_dwords == 0));
  bytes.read_to(6);
  r = inspect(ring);
  CHECK(r.read == 6);
  CHECK(r.head_dwords == 0);
}

TEST_CASE("memory that is no ring has an empty report") {
  Ring<> ring{RingMemory{}};
  CHECK(inspect(ring).ring_bytes == 0);
  test::RingBytes bytes;
  auto m = bytes.memory();
  m.dwords = m.dwords.first(100);
  CHECK(inspect(Ring<>{m}).ring_bytes == 0);
  CHECK_FALSE(inspect(Ring<>{[&] {
                auto watched = bytes.memory();
                watched.doorbell = nullptr;
                return watched;
              }()})
                  .has_doorbell);
}

TEST_CASE("any ring is a view of the same report") {
  test::RingBytes bytes;
  Ring<Producers::many> ring{bytes.memory()};
  REQUIRE(ring.submit(kPoll, kFence) == Errc::ok);
  bytes.read_to(24);
  const RingView view = ring;
  CHECK(view.read(view.ring) == 24);
  CHECK(view.inspect(view.ring, view.generation).committed == 40);
  CHECK(RingView{}.ring == nullptr);
}

TEST_CASE("a report says of which generation its packets are, and walks only those of 4.4.2") {
  test::RingBytes bytes;
  auto memory = bytes.memory();
  memory.generation = Generation::v6_0;
  Ring<> ring{memory};
  REQUIRE(ring.submit(kFence, kCopy) == Errc::ok);
  bytes.read_to(16);
  CHECK(inspect(ring).generation == Generation::v6_0);
  CHECK(inspect(ring, kDefaultGeneration).generation == kDefaultGeneration);
  const RingView view{ring};
  const auto r = view.inspect(view.ring, view.generation);
  CHECK(r.generation == Generation::v6_0);
  CHECK_FALSE(r.before_known);
  CHECK(r.before_dwords == 4);
}

TEST_CASE("a queue in motion is looked at again, and dwords that do not belong to the positions are not kept") {
  test::RingBytes bytes;
  Ring<Producers::one, Moving> ring{bytes.memory()};
  REQUIRE(ring.submit(Nop{100}) == Errc::ok);
  Moving::rptr = bytes.rptr;
  Moving::looks = 3;  // it stops between the two looks of the second attempt
  auto r = inspect(ring);
  CHECK(r.read == 12);
  CHECK_FALSE(r.moved);
  CHECK(r.head_dwords == StallReport::kHead);
  Moving::looks = 90;
  r = inspect(ring);
  CHECK(r.moved);
  CHECK((r.head_dwords == 0 && r.before_dwords == 0));
  Moving::looks = 0;
}

// Packets of one kind and one length only, so that whatever is kept must be made of them: a torn report is not.
TEST_CASE("a report of a ring in motion is whole or says that it is not") {
  test::RingBytes bytes;
  Ring<Producers::many> ring{bytes.memory()};
  std::atomic<bool> stop{false};
  std::thread engine([&] {
    while (!stop) {
      bytes.read_to(bytes.published());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> producers;
  for (int t = 0; t < 2; ++t)
    producers.emplace_back([&] {
      while (!stop)
        if (ring.submit(kFence, kFence) != Errc::ok) std::this_thread::yield();
    });
  bool sound = true;
  for (int i = 0; i < 2000; ++i) {
    const auto r = inspect(ring);
    if (r.moved) {
      sound = sound && r.head_dwords == 0 && r.before_dwords == 0;
      continue;
    }
    for (Reader reader{r.head_span()}; reader;) {
      const auto v = reader.next();
      sound = sound && v.is<Fence>() && decode<Fence>(v.dwords).addr == kFence.addr;
    }
    if (r.before_known) sound = sound && Reader{r.before_span()}.next().is<Fence>();
  }
  stop = true;
  for (auto& p : producers) p.join();
  engine.join();
  CHECK(sound);
}
