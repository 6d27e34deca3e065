// SPDX-License-Identifier: MIT
// The example of docs/porting.md: a packet that a program describes for itself.
#include "sdma/packets/encode.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/stream/writer.hpp"
#include "support/catch.hpp"

#include <array>

struct Stamp {
  sdma::GpuVa addr{};
  std::uint32_t value{};
  bool last{};
};
// clang-format off
template <> inline constexpr auto sdma::grammar::layout<Stamp> = packet(
    "stamp", op(200, 3), dwords(4), "store a value, and end a group",
    //     member           name     dword  bits    meaning
    addr64<&Stamp::addr> ("addr",    1,             "the dword").aligned(4),
    bits  <&Stamp::value>("value",   3,    0, 30,   "stored").value(),
    bits  <&Stamp::last> ("last",    3,   31, 31,   "ends the group").opt());
// clang-format on
static_assert(sdma::well_formed<Stamp>());

using namespace sdma;

TEST_CASE("a packet of a program's own: every typed function takes it") {
  constexpr Stamp stamp{.addr = GpuVa{0x7f0000001000}, .value = 7, .last = true};
  constexpr std::array<std::uint32_t, 4> dwords{0x000003c8, 0x00001000, 0x00007f00, 0x80000007};
  CHECK(encode(stamp) == dwords);
  const auto back = decode<Stamp>(dwords);
  CHECK(back.addr == stamp.addr);
  CHECK(back.value == 7);
  CHECK(back.last);
  CHECK(check(Stamp{.addr = GpuVa{2}}).rule == "alignment");
  CHECK(check(Stamp{.value = 1u << 31}).field == "value");

  std::array<std::uint32_t, 6> room{};
  Writer w{room};
  CHECK(w.put(stamp) == Errc::ok);
  CHECK(w.written().size() == 4);
  CHECK(w.put(stamp) == Errc::no_space);

  alignas(256) std::array<std::uint32_t, kMinRingDwords> memory{};
  alignas(64) std::uint64_t rptr[8]{}, wptr[8]{}, doorbell[8]{};
  Ring<> ring{{.dwords = memory, .rptr = rptr, .wptr = wptr, .doorbell = doorbell}};
  REQUIRE(ring.submit(stamp) == Errc::ok);
  CHECK(wptr[0] == 16);
  CHECK(std::equal(dwords.begin(), dwords.end(), memory.begin()));
}
