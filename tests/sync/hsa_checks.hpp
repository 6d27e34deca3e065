// SPDX-License-Identifier: MIT
#pragma once
// What a signal's recipes write, for any type with the members of ROCr's signal: ours here, and ROCr's own where its
// header is.
#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/hsa.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace test {

using namespace sdma;

/// The members of ROCr's signal.
struct alignas(64) Signal64 {
  std::int64_t kind = 1;
  volatile std::int64_t value = 1;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0, reserved1 = 0;
  std::uint64_t start_ts = 0, end_ts = 0;
};

using Dwords = std::vector<std::uint32_t>;
inline Dwords operator+(Dwords a, const Dwords& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline std::uint32_t low(std::uint64_t v) { return low_half(v); }
inline std::uint32_t high(std::uint64_t v) { return high_half(v); }

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
    CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s); }) == less_one);
  }
  SECTION("a sleeper gets its mailbox, then its interrupt") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    auto expected = less_one;
    expected.insert(expected.end(), {5, 0x2008, 0x7f00, 0x41, 6, 0x41});
    CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s); }) == expected);
  }
  SECTION("without atomics: two fences of the value less one") {
    s.event_mailbox_ptr = 0;
    s.value = 0x1'0000'0000;
    CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s, {.atomics = false}); }) ==
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
    const auto d =
        written([&](Writer& w) { return hsa::complete_signal(w, s, {.atomics = false, .stamp_end = true}); });
    CHECK(Dwords(d.begin(), d.begin() + 3) == Dwords{0x20d, low(end), high(end)});
    CHECK(d[3] == 5);
    CHECK(d.size() == hsa::kCompleteAtMost.dwords);
  }
  const Dwords poll_high{0xb0000008, low(value + 4), high(value + 4), 0, 0xffffffff, 0x0fff0004},
      poll_low{0xb0000008, low(value), high(value), 0, 0xffffffff, 0x0fff0004};
  const auto depend = [&](std::int64_t v, hsa::DependOptions o) {
    s.value = v;
    return written([&](Writer& w) { return hsa::depend(w, s, o); });
  };
  SECTION("a dependency polls the halves that the caller chooses, once or twice") {
    using enum hsa::Halves;
    for (const std::int64_t v : {0ll, 1ll, 0x1'0000'0000ll}) {
      CHECK(depend(v, {.halves = hsa::Halves::low}) == poll_low);
      CHECK(depend(v, {.halves = hsa::Halves::low, .twice = true}) == poll_low + poll_low);
      CHECK(depend(v, {.twice = true}) == poll_high + poll_high + poll_low + poll_low);
      CHECK(depend(v, {.twice = true}).size() == hsa::kDependTwiceAtMost.dwords);
      CHECK(depend(v, {}) == poll_high + poll_low);
    }
    CHECK(depend(0, {.halves = by_value}).empty());
    CHECK(depend(1, {.halves = by_value}) == poll_low);
    CHECK(depend(0xffff'ffff, {.halves = by_value, .twice = true}) == poll_low + poll_low);
    CHECK(depend(0x1'0000'0000, {.halves = by_value}) == poll_high + poll_low);
    CHECK(depend(-1, {.halves = by_value}) == poll_high + poll_low);
  }
  SECTION("without atomics: one fence or two, as the caller chooses") {
    using enum hsa::Halves;
    s.event_mailbox_ptr = 0;
    const auto complete = [&](std::int64_t v, hsa::Halves halves) {
      s.value = v;
      return written([&](Writer& w) { return hsa::complete_signal(w, s, {.atomics = false, .fences = halves}); });
    };
    const auto store_low = [&](std::uint32_t v) { return Dwords{5, sdma::low_half(value), high(value), v}; };
    const auto store_high = [&](std::uint32_t v) { return Dwords{5, sdma::low_half(value + 4), high(value + 4), v}; };
    CHECK(complete(3, hsa::Halves::low) == store_low(2));
    CHECK(complete(3, by_value) == store_low(2));
    CHECK(complete(3, both) == store_high(0) + store_low(2));
    CHECK(complete(0x1'0000'0001, by_value) == store_high(1) + store_low(0));
    CHECK(complete(0x1'0000'0000, by_value) == store_high(0) + store_low(0xffffffff));
    CHECK(complete(0, by_value) == store_high(0xffffffff) + store_low(0xffffffff));
  }
  SECTION("stamps go to any 8-byte aligned word") {
    const GpuVa word{0x7f0000001008};
    s.event_mailbox_ptr = 0;
    CHECK(written([&](Writer& w) { return hsa::stamp(w, word); }) == Dwords{0x20d, 0x1008, 0x7f00});
    CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s, {.stamp_end = true, .stamp_end_at = word}); }) ==
          Dwords{0x20d, 0x1008, 0x7f00} + less_one);
    CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s, {.stamp_end_at = word}); }) ==
          Dwords{0x20d, 0x1008, 0x7f00} + less_one);
    std::uint32_t room[16];
    Writer w{room};
    CHECK(hsa::stamp(w, word + 4) == Errc::bad_packet);
  }
  SECTION("the leader of a gang waits for a member, then clears its item") {
    auto is_one = poll_low;
    is_one[3] = 1;
    CHECK(written([&](Writer& w) { return hsa::join(w, s); }) == is_one + less_one);
    CHECK(written([&](Writer& w) { return hsa::join(w, s); }).size() == hsa::kJoinAtMost.dwords);
    CHECK(written([&](Writer& w) { return hsa::join(w, s, false); }) == is_one + Dwords{5, low(value), high(value), 0});
  }
  SECTION("one dword too few, or a bad event: nothing is written") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    std::uint32_t room[14]{};
    Writer tight{std::span(room).first(13)};
    CHECK(hsa::complete_signal(tight, s) == Errc::no_space);
    CHECK(tight.written().empty());
    std::uint32_t more[64]{};
    Writer w{more};
    s.event_id = 0x10000000;
    CHECK(hsa::complete_signal(w, s) == Errc::bad_packet);
    CHECK((w.written().empty() && w.error() == Errc::bad_packet));
    CHECK(more[0] == 0);
  }
}

}  // namespace test
