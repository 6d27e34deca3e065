// SPDX-License-Identifier: MIT
#include "hsa_checks.hpp"

#include <cstddef>
#include <vector>

using namespace sdma;
using namespace test;

namespace {

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

TEST_CASE("from 5.0 on, the fences of a completion say that the memory is uncached") {
  alignas(64) Signal64 s;
  s.event_mailbox_ptr = 0x1000;
  s.event_id = 7;
  const auto fences = [&](Generation g) {
    std::uint32_t room[64]{};
    AnyWriter w{room, {g}};
    REQUIRE(hsa::complete_signal(w, s, {.atomics = false}) == Errc::ok);
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
  CHECK(written([&](Writer& w) { return hsa::complete_signal(w, s, {.atomics = false, .stamp_end = true}); }) ==
        Dwords{0x20d, 0x1060, 0x7f00, 5, 0x1004, 0x7f00, 0, 5, 0x1000, 0x7f00, 0});
  CHECK(written([&](Writer& w) { return hsa::join(w, s); }) == Dwords{0xb0000008, 0x1000, 0x7f00, 1, 0xffffffff,
                                                                      0x0fff0004, 0x5e00000a, 0x1000, 0x7f00,
                                                                      0xffffffff, 0xffffffff, 0, 0, 0});
}
