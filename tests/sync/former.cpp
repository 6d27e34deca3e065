// SPDX-License-Identifier: MIT
// Names of 0.2 that are deprecated: they compile, and mean what their successors mean.
#include "sdma/sdma.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/hsa.hpp"
#include "support/catch.hpp"

#include <array>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace sdma;

TEST_CASE("lengths by their former names") {
  STATIC_REQUIRE(kDwordsOf<Fence, Trap> == dwords_of<Fence, Trap>());
  STATIC_REQUIRE(kCompleteWithAtomicDwords == 8);
  STATIC_REQUIRE(kCompleteWithFenceDwords == 4);
  STATIC_REQUIRE(kCompleteWithTwoFencesDwords == 8);
  STATIC_REQUIRE(kInterruptDwords == 6);
  STATIC_REQUIRE(kAcquireDwords == 6);
  STATIC_REQUIRE(kAcquireZeroDwords == 12);
  STATIC_REQUIRE(kFullBarrierDwords == 10);
  STATIC_REQUIRE(hsa::kCompleteDwords == 3 + 4 + 4 + 4 + 2);
  STATIC_REQUIRE(hsa::kDependTwiceDwords == 24);
  STATIC_REQUIRE(hsa::kDependDwords == 12);
  STATIC_REQUIRE(hsa::kJoinDwords == 14);
  STATIC_REQUIRE(Writer::dwords_of({.src = GpuVa{}, .dst = GpuVa{}, .bytes = 5ull << 30}) == 42);
  STATIC_REQUIRE(AnyWriter::dwords_of(Writer::Fill{.bytes = 8 << 20}, Generation::v4_0) == 15);
  STATIC_REQUIRE(Writer::dwords_of(Writer::Broadcast{.bytes = 4}) == 9);
  STATIC_REQUIRE(Writer::dwords_of(Writer::Swap{.bytes = 64}) == 7);
}

TEST_CASE("positions, halves and completions by their former names") {
  std::array<std::uint32_t, 64> d{};
  Writer w{d};
  REQUIRE(w.put(Nop{5}) == Errc::ok);
  CHECK(w.position() == 5);
  Reader r{w.written()};
  r.next();
  CHECK(r.position() == 5);
  const Signal s{.va = GpuVa{0x1000}};
  CHECK((s.low() == s.low_va() && s.high() == s.high_va() && s.high().value == 0x1004));
  struct {
    std::int64_t value = 1;
    std::uint64_t event_mailbox_ptr = 0;
    std::uint32_t event_id = 0;
    std::uint64_t start_ts = 0, end_ts = 0;
  } const signal;
  REQUIRE(hsa::complete(w, signal) == Errc::ok);
  CHECK(Reader{w.written().subspan(5)}.next().is<Atomic>());
}
