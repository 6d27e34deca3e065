// SPDX-License-Identifier: MIT
#pragma once
// A wave of a GPU writes a slot together: one lane reserves and publishes, and each lane stores one dword. All packets
// of the slot leave the GPU as one store of neighbouring addresses.
//
//   Wave wave;                                       // in a kernel: every lane calls, with equal arguments
//   const CopyLinear copy{.src = a, .dst = b, .bytes = n};
//   const Errc e = submit_together(wave, ring, copy, Fence{.addr = go, .value = 1});
//   if (e == Errc::no_space) return e;               // every lane gets the same answer
//
//   lane 0      reserve |         | d0 | release |         | publish: wptr, doorbell
//   lane 1              | barrier | d1 | release | barrier |
//   lane n              |         | dn | release |         |
//
// Wave is the one that runs: 64 or 32 lanes of an AMD GPU, 32 of an NVIDIA GPU. All its lanes must be active: a wave
// with absent lanes waits for them for ever, or writes no dword for them. On the host, it is one lane, so that the same
// function runs there. Any waves and threads may share a Ring<many>; one wave at a time may use a Ring<one>.
//
// A wave cannot exit with a slot that is still reserved, because a slot is reserved and published in one call. A full
// ring is Errc::no_space; the call does not wait for room. Memory order: each lane releases its dwords to the system
// before the barrier, as order.hpp says.
//
// Errors: those of Ring::submit. The packets have a length that is known when you compile, and are those of `G`.
#include "sdma/queue/ring.hpp"

namespace sdma { inline namespace v0_3 {

SDMA_DEVICE_BEGIN
/// The lanes that run one instruction together.
struct Wave {
  /// Which lane this is, from 0.
  static std::uint32_t lane() noexcept { return SDMA_LANE(); }
  /// How many lanes there are.
  static std::uint32_t lanes() noexcept { return SDMA_LANES(); }
  /// The value that lane 0 passes, with up to 64 bits.
  template <class T> static T first(T v) noexcept {
    if constexpr (sizeof v <= 4) return static_cast<T>(SDMA_FIRST_LANE(static_cast<std::uint32_t>(v)));
    else return T{first(static_cast<std::uint32_t>(v >> 32))} << 32 | first(static_cast<std::uint32_t>(v));
  }
  /// What the lanes have done before is done for lane 0 afterwards.
  static void barrier() noexcept { SDMA_WAVE_BARRIER(); }
};

/// A lane on its own: each lane of a wave has slots of its own.
struct OneLane {
  static constexpr std::uint32_t lane() noexcept { return 0; }   ///< it is lane 0
  static constexpr std::uint32_t lanes() noexcept { return 1; }  ///< there is no other
  /// Its own value.
  template <class T> static constexpr T first(T v) noexcept { return v; }
  static constexpr void barrier() noexcept {}  ///< waits for no lane
};

namespace detail {
/// Does W have one lane, whatever happens?
template <class W> inline constexpr bool kAlone = false;
template <> inline constexpr bool kAlone<OneLane> = true;
template <> inline constexpr bool kAlone<Wave> = !SDMA_DEVICE_PASS;
}  // namespace detail

/// Checks, encodes and publishes the packets in one slot with one doorbell: all of them or none. Every lane of the wave
/// calls it, with equal arguments, and gets the same result.
template <Generation G = kDefaultGeneration, class W, class R, Packet... P>
[[nodiscard]] Errc submit_together(W& wave, R& ring, const P&... p) noexcept {
  constexpr std::size_t kDwords = (length<G>(P{}) + ...);
  static_assert((grammar::layout<P>.length.plain() && ...), "a packet of a length that its values decide");
  if (ring.generation() != G) return Errc::wrong_generation;
  if (!(fits<G>(p) && ...)) return Errc::bad_packet;
  if constexpr (detail::kAlone<W>) {
    const auto slot = ring.reserve(kDwords);
    if (!slot) return slot.error();
    auto* at = slot->dwords.data();
    ((at = encode_to<G>(p, at)), ...);
    ring.publish(*slot);
    return Errc::ok;
  }
  // What does not change is loaded once, before anything that lanes wait for.
  auto* const ring_dwords = ring.memory().dwords.data();
  const auto last = static_cast<std::uint32_t>(ring.memory().dwords.size()) - 1;
  const auto length = ring.padded(std::uint32_t{kDwords});
  const auto lane = wave.lane();
  Slot slot;
  auto e = Errc::ok;
  if (lane == 0) e = ring.template reserve_unfilled<kDwords>(slot);
  e = wave.first(e);
  if (e != Errc::ok) return e;
  const auto begin = wave.first(static_cast<std::uint32_t>(slot.begin / 4));
  const auto total = wave.first(static_cast<std::uint32_t>((slot.end - slot.begin) / 4));
  wave.barrier();  // what lane 0 knows of rptr, before the stores that reuse the space
  std::uint32_t dwords[kDwords], *end = dwords;
  ((end = encode_to<G>(p, end)), ...);
  SDMA_SHORT_LOOP
  for (auto i = lane; i < total; i += wave.lanes()) {
    // A choice between registers: an index that differs between lanes would put the array into memory.
    std::uint32_t mine = 0;  // a NOP
    auto place = i - (total - length);
    SDMA_OPAQUE(place);  // one number, compared with constants
    for (std::uint32_t k = 0; k < kDwords; ++k) mine = k == place ? dwords[k] : mine;
    ring_dwords[(begin + i) & last] = mine;
  }
  R::Order::before_leader();
  wave.barrier();
  if (lane == 0) ring.publish_released(slot);
  return Errc::ok;
}
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
