// SPDX-License-Identifier: MIT
#include "sdma/sync/hsa.hpp"

#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/reader.hpp"
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
Dwords operator+(Dwords a, const Dwords& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// A signal that was read once, and whose words lie elsewhere.
struct ReadOnce {
  std::int64_t value = 1;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0;
  GpuVa words{0x7f0000001000};
};
GpuVa value_va(const ReadOnce& s) { return s.words; }
GpuVa start_stamp_va(const ReadOnce& s) { return s.words + 64; }
GpuVa end_stamp_va(const ReadOnce& s) { return s.words + 96; }

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
      CHECK(depend(v, {.twice = true}).size() == hsa::kDependTwiceDwords);
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
      return written([&](Writer& w) { return hsa::complete(w, s, {.atomics = false, .fences = halves}); });
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
    CHECK(written([&](Writer& w) { return hsa::complete(w, s, {.stamp_end = true, .stamp_end_at = word}); }) ==
          Dwords{0x20d, 0x1008, 0x7f00} + less_one);
    CHECK(written([&](Writer& w) { return hsa::complete(w, s, {.stamp_end_at = word}); }) ==
          Dwords{0x20d, 0x1008, 0x7f00} + less_one);
    std::uint32_t room[16];
    Writer w{room};
    CHECK(hsa::stamp(w, word + 4) == Errc::bad_packet);
  }
  SECTION("the leader of a gang waits for a member, then clears its item") {
    auto is_one = poll_low;
    is_one[3] = 1;
    CHECK(written([&](Writer& w) { return hsa::join(w, s); }) == is_one + less_one);
    CHECK(written([&](Writer& w) { return hsa::join(w, s); }).size() == hsa::kJoinDwords);
    CHECK(written([&](Writer& w) { return hsa::join(w, s, false); }) == is_one + Dwords{5, low(value), high(value), 0});
  }
  SECTION("one dword too few, or a bad event: nothing is written") {
    s.event_mailbox_ptr = 0x7f0000002008;
    s.event_id = 0x41;
    std::uint32_t room[14]{};
    Writer tight{std::span(room).first(13)};
    CHECK(hsa::complete(tight, s) == Errc::no_space);
    CHECK(tight.written().empty());
    std::uint32_t more[64]{};
    Writer w{more};
    s.event_id = 0x10000000;
    CHECK(hsa::complete(w, s) == Errc::bad_packet);
    CHECK((w.written().empty() && w.error() == Errc::bad_packet));
    CHECK(more[0] == 0);
  }
}

}  // namespace

TEST_CASE("the shares of a gang are the copy, in pieces of whole units") {
  const auto bytes = GENERATE(std::uint64_t{0}, 1, 63, 64, 65, 1000, 4096, 1ull << 40, ~0ull);
  const auto n = GENERATE(std::size_t{1}, 2, 3, 8);
  const auto unit = GENERATE(std::uint32_t{1}, 64, 4096);
  const Writer::Copy all{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = bytes, .chunk = kChunk22};
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto s = hsa::share(all, i, n, unit);
    INFO(bytes << " / " << n << ", unit " << unit << ": share " << i);
    CHECK((s.src == all.src + at && s.dst == all.dst + at && s.chunk == kChunk22));
    if (at + s.bytes < bytes) CHECK((s.bytes % unit == 0 && s.bytes >= bytes / n));
    if (n > 1 && bytes != 0) CHECK(s.bytes <= ((bytes - 1) / n / unit + 1) * unit);
    at += s.bytes;
  }
  CHECK(at == bytes);
}

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

TEST_CASE("from 5.0 on, the fences of a completion say that the memory is uncached") {
  alignas(64) Signal64 s;
  s.event_mailbox_ptr = 0x1000;
  s.event_id = 7;
  const auto fences = [&](Generation g) {
    std::uint32_t room[64]{};
    AnyWriter w{room, {g}};
    REQUIRE(hsa::complete(w, s, {.atomics = false}) == Errc::ok);
    REQUIRE(hsa::join(w, s, false) == Errc::ok);
    std::vector<Fence> found;
    for (Reader r{w.written(), catalogue(g)}; r;)
      if (const auto v = r.next(); v.is<Fence>()) found.push_back(decode<Fence>(v.dwords, g));
    REQUIRE(found.size() == 4);  // two halves, the mailbox, the item of a gang
    return found;
  };
  for (const auto& f : fences(Generation::v4_4_2)) CHECK(f.mtype == 0);
  for (const auto g : {Generation::v5_0, Generation::v6_0, Generation::v7_0})
    for (const auto& f : fences(g)) CHECK(f.mtype == 3);
}

TEST_CASE("the words of a signal lie where the overloads of its type say") {
  const ReadOnce s;
  CHECK(written([&](Writer& w) { return hsa::depend(w, s, {.halves = hsa::Halves::low}); }) ==
        Dwords{0xb0000008, 0x1000, 0x7f00, 0, 0xffffffff, 0x0fff0004});
  CHECK(written([&](Writer& w) { return hsa::stamp_start(w, s); }) == Dwords{0x20d, 0x1040, 0x7f00});
  CHECK(written([&](Writer& w) { return hsa::complete(w, s, {.atomics = false, .stamp_end = true}); }) ==
        Dwords{0x20d, 0x1060, 0x7f00, 5, 0x1004, 0x7f00, 0, 5, 0x1000, 0x7f00, 0});
  CHECK(written([&](Writer& w) { return hsa::join(w, s); }) == Dwords{0xb0000008, 0x1000, 0x7f00, 1, 0xffffffff,
                                                                      0x0fff0004, 0x5e00000a, 0x1000, 0x7f00,
                                                                      0xffffffff, 0xffffffff, 0, 0, 0});
}
