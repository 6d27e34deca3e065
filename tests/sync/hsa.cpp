#include "sdma/sync/hsa.hpp"

#include "support.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <vector>

#if __has_include(<hsa/amd_hsa_signal.h>)
#include <hsa/amd_hsa_signal.h>
#endif

using namespace sdma;

namespace {

/// The members of ROCr's signal, where its header is not there.
struct alignas(64) Signal64 {
  std::int64_t kind = 1;
  volatile std::int64_t value = 1;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0, reserved1 = 0;
  std::uint64_t start_ts = 0, end_ts = 0;
};

using Dwords = std::vector<std::uint32_t>;
std::uint32_t low(std::uint64_t v) { return low_half(v); }
std::uint32_t high(std::uint64_t v) { return high_half(v); }

template <class Recipe> Dwords written(Recipe recipe) {
  std::uint32_t room[64]{};
  Writer w{room};
  REQUIRE(recipe(w) == Errc::ok);
  return {w.written().begin(), w.written().end()};
}

template <class S> void checks(S& s) {
  const auto value = hsa::value_va(s).value;
  s.value = 1;
  const auto start = test::va(s.start_ts).value, end = test::va(s.end_ts).value;
  const Dwords less_one{0x5e00000a, low(value), high(value), 0xffffffff, 0xffffffff, 0, 0, 0};

  SECTION("a dependency is zero, high half first") {
    CHECK(written([&](Writer& w) { return hsa::depend(w, s); }) ==
          Dwords{0xb0000008, low(value + 4), high(value + 4), 0, 0xffffffff, 0x0fff0004,  //
                 0xb0000008, low(value), high(value), 0, 0xffffffff, 0x0fff0004});
  }
  SECTION("completion is an atomic, and no more where nobody sleeps") {
    s.event_mailbox_ptr = 0;
    CHECK(written([&](Writer& w) { return hsa::complete(w, s); }) == less_one);
  }
  SECTION("a sleeper gets its mailbox, then its interrupt") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    auto expected = less_one;
    expected.insert(expected.end(), {5, 0x2008, 0x7f00, 0x41, 6, 0x41});
    CHECK(written([&](Writer& w) { return hsa::complete(w, s); }) == expected);
  }
  SECTION("without atomics: two fences of the value less one") {
    s.event_mailbox_ptr = 0;
    s.value = 0x1'0000'0000;
    CHECK(written([&](Writer& w) { return hsa::complete(w, s, {.atomics = false}); }) ==
          Dwords{5, low(value + 4), high(value + 4), 0, 5, low(value), high(value), 0xffffffff});
  }
  SECTION("the start stamp goes into the signal") {
    CHECK(written([&](Writer& w) { return hsa::stamp_start(w, s); }) == Dwords{0x20d, low(start), high(start)});
    Writer full{{}};
    CHECK(hsa::stamp_start(full, s) == Errc::no_space);
  }
  SECTION("the end stamp goes into the signal, before the completion, and all of it fits what is promised") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    const auto d = written([&](Writer& w) { return hsa::complete(w, s, {.atomics = false, .stamp_end = true}); });
    CHECK(Dwords(d.begin(), d.begin() + 3) == Dwords{0x20d, low(end), high(end)});
    CHECK(d[3] == 5);
    CHECK(d.size() == hsa::kCompleteDwords);
  }
  SECTION("one dword too few, or a bad event: nothing is written") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    std::uint32_t room[13]{};
    Writer tight{room};
    CHECK(hsa::complete(tight, s) == Errc::no_space);
    CHECK(tight.written().empty());
    std::uint32_t more[64]{};
    Writer w{more};
    s.event_id = 0x10000000;
    CHECK(hsa::complete(w, s) == Errc::bad_packet);
    CHECK(w.written().empty());
    CHECK(more[0] == 0);
  }
}

}  // namespace

TEST_CASE("a signal with the members of ROCr's") {
  Signal64 s;
  CHECK(hsa::value_va(s) == test::va(s.value));
  checks(s);
}

#ifdef AMD_HSA_SIGNAL_H
TEST_CASE("ROCr's own signal") {
  static_assert(offsetof(amd_signal_t, start_ts) % 8 == 0 && offsetof(amd_signal_t, end_ts) % 8 == 0);
  static_assert(offsetof(amd_signal_t, value) == offsetof(Signal64, value));
  amd_signal_t s{};
  CHECK(hsa::value_va(s) == test::va(s.value));
  checks(s);
}
#endif
