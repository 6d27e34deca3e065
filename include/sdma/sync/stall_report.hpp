// SPDX-License-Identifier: MIT
#pragma once
// The state of a queue when a wait gave up: numbers and dwords, no text. `describe` (sync/describe.hpp, compiled)
// prints what it holds; `doctor::diagnose(doctor::snapshot_of(report, peek, waited))` (doctor/snapshot.hpp, compiled)
// says why the queue hangs.
//
//   auto r = wait(done, Compare::ge, epoch, Deadline::in(200ms), ring);
//   if (!r) log(describe(r.error(), peek));
//
//          before       head
//   ... [ one packet ][ packets ...               ) ...
//                     read                        committed        reserved
//
// rptr shows, with a delay, what the engine has consumed. No document says whether hardware leaves it before or after
// the poll that waits, so a report keeps the packet before rptr as well as those from rptr on. To find packet
// boundaries, a report walks the ring from its start, where a packet always begins. If part of the way has already been
// overwritten, or the packets are not those of 4.4.2, `before_known` is false, and `before` holds raw dwords.
//
// A report reads the ring while producers may write to it. It leaves out dwords that may have been overwritten
// meanwhile, and `moved` says that the positions changed. With a Ring<Producers::one> only its producer may take a
// report (positions() is not thread-safe); with a Ring<Producers::many> any thread may. A report neither fails nor
// allocates nor waits. It costs one walk over the ring.
#include "sdma/core/compiler.hpp"
#include "sdma/core/units.hpp"
#include "sdma/packets/condition.hpp"
#include "sdma/packets/lengths.hpp"
#include "sdma/queue/ring.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace sdma { inline namespace v0_3 {

/// What a wait saw when its deadline passed, or `inspect` when it was called.
struct StallReport {
  static constexpr std::size_t kHead = 64, kBefore = 16;  ///< the most dwords of `head`, and of `before`

  // What was waited for.
  GpuVa signal{};             ///< its address as engines see it
  Compare func{};             ///< the comparison that the wait makes
  std::uint64_t reference{};  ///< what the word is compared with
  std::uint64_t seen{};       ///< its value when it was last loaded
  std::uint32_t index{};      ///< of several signals, the one that this report is about
  std::uint32_t signals = 1;  ///< how many signals there were

  // The queue, in bytes as Ring::positions has them. All zero without a ring.
  std::uint64_t ring_bytes{};                     ///< its size; 0: no ring was given, or its memory was refused
  std::uint64_t read{}, committed{}, reserved{};  ///< as Ring::positions has them
  std::uint64_t wptr{};        ///< its value in memory; if it is not `committed`, something else stores to it
  std::uint64_t read_first{};  ///< `read` when the wait began; equal to `read` if the engine has not moved
  bool has_doorbell{};         ///< false: the engine watches wptr
  bool moved{};                ///< positions changed while the dwords were copied
  Generation generation = kDefaultGeneration;  ///< of the packets, as the caller gave it

  // Dwords around `read`.
  std::array<std::uint32_t, kHead> head{};  ///< from `read` on; begins with a packet
  /// The packet before `read`; if its start is not known, the dwords up to `read`.
  std::array<std::uint32_t, kBefore> before{};
  std::uint8_t head_dwords{};    ///< 0: nothing committed is left, or nothing could be kept
  std::uint8_t before_dwords{};  ///< how many of `before` are valid
  bool before_known{};  ///< `before` begins with the packet before `read`: all of it, or its first kBefore dwords

  /// The valid dwords of `head`.
  [[nodiscard]] constexpr std::span<const std::uint32_t> head_span() const noexcept {
    return {head.data(), head_dwords};
  }
  /// The valid dwords of `before`.
  [[nodiscard]] constexpr std::span<const std::uint32_t> before_span() const noexcept {
    return {before.data(), before_dwords};
  }
};

namespace detail {

/// Loads a dword that others may be overwriting. The caller then loads the positions again and discards what may be
/// torn, as the reader of a seqlock does; the acquire keeps that second load of the positions after this load. This
/// load is volatile and not atomic: the producers' stores are plain, and ThreadSanitizer reports an atomic load against
/// them even in a function with `no_sanitize`.
SDMA_NO_THREAD_SANITIZER inline std::uint32_t shared_dword(const std::uint32_t& d) noexcept {
  const std::uint32_t value = static_cast<const volatile std::uint32_t&>(d);
  if constexpr (SDMA_KEEPS_ORDER) std::atomic_signal_fence(std::memory_order_acquire);  // for the compiler alone
  else std::atomic_thread_fence(std::memory_order_acquire);
  return value;
}

/// Walks packets from offset 0 and returns the length, in dwords, of the packet that ends at offset `end` (in dwords);
/// 0 if no packet ends there.
inline std::size_t last_packet(std::span<const std::uint32_t> ring, std::size_t end) noexcept {
  std::size_t at = 0, n = 0;
  while (at < end) {
    // Works on a copy of each head: a packet that is overwritten meanwhile must not change its length between two
    // loads.
    std::array<std::uint32_t, kMaxHead> packet{};
    const auto kept = end - at < packet.size() ? end - at : packet.size();
    for (std::size_t i = 0; i < kept; ++i) packet[i] = shared_dword(ring[at + i]);
    n = packet_length({packet.data(), kept});
    if (n == 0) n = 1;
    at += n;
  }
  return at == end ? n : 0;
}

inline void keep_dwords(StallReport& r, std::span<const std::uint32_t> ring) noexcept {
  const auto mask = ring.size() - 1;
  const auto read = r.read / 4;
  const auto left = (r.committed - r.read) / 4;
  r.head_dwords = static_cast<std::uint8_t>(left < StallReport::kHead ? left : StallReport::kHead);
  for (std::size_t i = 0; i < r.head_dwords; ++i)
    r.head[i] = shared_dword(ring[static_cast<std::size_t>((read + i) & mask)]);

  const auto offset = static_cast<std::size_t>(read & mask);
  // At offset 0 the previous packet lies at the end of the ring, after a whole lap of packets.
  const auto end = offset == 0 && read != 0 ? ring.size() : offset;
  const bool lap_is_there = r.reserved <= r.read - end * 4 + r.ring_bytes;
  auto n = lap_is_there && r.generation == kDefaultGeneration ? last_packet(ring, end) : 0;
  r.before_known = n != 0;
  if (!r.before_known) {  // keep what is not overwritten yet
    const auto oldest = r.reserved > r.ring_bytes ? r.reserved - r.ring_bytes : 0;
    const auto there = static_cast<std::size_t>((r.read - oldest) / 4);
    n = there < StallReport::kBefore ? there : StallReport::kBefore;
  }
  r.before_dwords = static_cast<std::uint8_t>(n < StallReport::kBefore ? n : StallReport::kBefore);
  for (std::size_t i = 0; i < r.before_dwords; ++i)
    r.before[i] = shared_dword(ring[static_cast<std::size_t>((read - n + i) & mask)]);
}

}  // namespace detail

/// The current state of `ring`: positions and dwords. The fields about what was waited for stay empty. `g`: of the
/// packets in it.
template <Producers K, class Order> StallReport inspect(const Ring<K, Order>& ring, Generation g) noexcept {
  const auto& m = ring.memory();
  // A report is meant to show positions that contradict each other, but it cannot read memory that cannot be a ring.
  const auto size = m.dwords.size();
  if (size < kMinRingDwords || (size & (size - 1)) != 0 || !m.rptr || !m.wptr) return {};
  StallReport r;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto p = ring.positions();
    r = {};
    r.generation = g;
    r.ring_bytes = m.dwords.size_bytes();
    r.read = r.read_first = p.read;
    r.committed = p.committed;
    r.reserved = p.reserved;
    r.wptr = Order::load(m.wptr, Order::kRptr);
    r.has_doorbell = m.doorbell != nullptr;
    const bool sound =
        p.read % 4 == 0 && p.read <= p.committed && p.committed <= p.reserved && p.reserved - p.read < r.ring_bytes;
    if (!sound) return r;
    detail::keep_dwords(r, m.dwords);
    const auto after = ring.positions();
    r.moved = after.read != p.read || after.reserved != p.reserved;
    if (!r.moved) return r;
  }
  r.head_dwords = r.before_dwords = 0;
  r.before_known = false;
  return r;
}

/// The same, with the ring's own generation.
template <Producers K, class Order> StallReport inspect(const Ring<K, Order>& ring) noexcept {
  return inspect(ring, ring.generation());
}

/// A reference to a ring of any type, or to none, so that a report can be taken of it.
struct RingView {
  const void* ring{};  ///< the ring, for the functions below
  /// Fills the part of a report that describes the ring; null: there is no ring.
  StallReport (*inspect)(const void*, Generation) noexcept = nullptr;
  std::uint64_t (*read)(const void*) noexcept = nullptr;  ///< Positions::read of the ring
  Generation generation = kDefaultGeneration;             ///< of the packets in the ring

  RingView() = default;
  template <Producers K, class Order> RingView(const Ring<K, Order>& r) noexcept : RingView(r, r.generation()) {}
  template <Producers K, class Order>
  RingView(const Ring<K, Order>& r, Generation g) noexcept
      : ring(&r),
        inspect([](const void* p, Generation of) noexcept {
          return sdma::inspect(*static_cast<const Ring<K, Order>*>(p), of);
        }),
        read([](const void* p) noexcept { return static_cast<const Ring<K, Order>*>(p)->positions().read; }),
        generation(g) {}
};

}}  // namespace sdma::v0_3
