// SPDX-License-Identifier: MIT
// Puts of a host function in place of a kernel: what each writes, what each waits for, and where each gives up.
#include "sdma/sync/device.hpp"

#include "support.hpp"
#include "support/catch.hpp"

#include <vector>

using namespace sdma;
using test::RingBytes;

namespace {

constexpr CopyLinear kTile{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = 256};

/// A ring that no engine reads, and two words.
struct Scene {
  RingBytes bytes{};
  Ring<Producers::many> ring{bytes.memory()};
  alignas(8) std::uint64_t words[2]{};
  Signal signal(int n) { return {.word = &words[n], .va = GpuVa{0x3000 + static_cast<std::uint64_t>(n) * 8}}; }
  std::vector<std::uint32_t> published() { return {bytes.dwords, bytes.dwords + bytes.published() / 4}; }
};
std::vector<std::uint32_t> dwords(const auto&... packets) {
  std::vector<std::uint32_t> out((length<kDefaultGeneration>(packets) + ...));
  auto* at = out.data();
  ((at = encode_to(packets, at)), ...);
  return out;
}

}  // namespace

TEST_CASE("a put is a copy; with a signal, a fence or an addition follows in the same slot") {
  Scene s;
  Puts puts{s.ring};
  CHECK(puts.put(kTile) == Errc::ok);
  CHECK(puts.put_signal(kTile, s.signal(0), 7) == Errc::ok);
  CHECK(puts.put_add(kTile, s.signal(1), 3) == Errc::ok);
  CHECK(s.published() == dwords(kTile, kTile, Fence{.addr = GpuVa{0x3000}, .value = 7}, kTile,
                                Atomic{.addr = GpuVa{0x3008}, .op = AtomicOp::add_rtn_64, .value = 3}));
}

TEST_CASE("quiet sends a fence, and gives up after the loads that it was given") {
  Scene s;
  Puts puts{s.ring, OneLane{}};
  CHECK(puts.quiet(s.signal(0), 5, 3) == Errc::timed_out);
  CHECK(s.published() == dwords(Fence{.addr = GpuVa{0x3000}, .value = 5}));
  s.words[0] = 5;  // the fence arrives after all
  CHECK(puts.reached(s.signal(0), 5, 1) == Errc::ok);
  CHECK(puts.reached(s.signal(0), 6, 1) == Errc::timed_out);
  CHECK(puts.reached(s.signal(0), 5, 0) == Errc::timed_out);
  // The epoch is cyclic, and the high half is not a part of it.
  s.words[0] = 0x9'0000'0002;
  CHECK(puts.reached(s.signal(0), 0xffff'fffe, 1) == Errc::ok);
  CHECK(puts.reached(s.signal(0), 3, 1) == Errc::timed_out);
}

TEST_CASE("consumed waits for rptr to pass what was put before") {
  Scene s;
  Puts puts{s.ring};
  CHECK(puts.consumed(1) == Errc::ok);
  CHECK(puts.put(kTile) == Errc::ok);
  CHECK(puts.consumed(2) == Errc::timed_out);
  s.bytes.read_to(s.bytes.published() - 4);
  CHECK(puts.consumed(2) == Errc::timed_out);
  s.bytes.read_to(s.bytes.published());
  CHECK(puts.consumed(1) == Errc::ok);
}

TEST_CASE("a full ring, a wrong packet and a wrong generation are refused, and nothing is written") {
  Scene s;
  Puts puts{s.ring};
  CHECK(puts.put({.src = GpuVa{1}, .dst = GpuVa{2}, .bytes = 0}) == Errc::bad_packet);
  // A put is one packet: what a Writer would split is refused.
  CHECK(puts.put({.src = GpuVa{1}, .dst = GpuVa{2}, .bytes = (1u << 30) + 1, .chunk = ~0u}) == Errc::bad_packet);
  CHECK(puts.put_add({.src = GpuVa{1}, .dst = GpuVa{2}, .bytes = 65, .chunk = 64}, s.signal(1)) == Errc::bad_packet);
  CHECK(puts.put_signal({.src = GpuVa{1}, .dst = GpuVa{2}, .bytes = 1ull << 32}, s.signal(0), 1) == Errc::bad_packet);
  CHECK(Puts<Generation::v6_0>(s.ring).put(kTile) == Errc::wrong_generation);
  CHECK(s.bytes.published() == 0);
  int fit = 0;
  while (puts.put(kTile) == Errc::ok) ++fit;
  CHECK(fit == 36);  // of 7 dwords: one dword of 256 stays free
  CHECK(puts.put(kTile) == Errc::no_space);
  CHECK(puts.quiet(s.signal(0), 1, 1) == Errc::no_space);
  s.bytes.read_to(s.bytes.published());
  CHECK(puts.put(kTile) == Errc::ok);
}
