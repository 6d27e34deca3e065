#pragma once
// How an engine waits for a ROCr signal, and how it completes one. The functions are templates over the signal type, so
// no HSA header is needed or included.
//
//   hsa::depend(w, *dep);                                  // nothing below starts before *dep is 0
//   hsa::stamp_start(w, *out);                             // profiling: the node's clock, now
//   w.copy({.src = a, .dst = b, .bytes = n});
//   hsa::complete(w, *out, {.atomics = link_has_64_bit_atomics, .stamp_end = true});
//   ring.publish(slot, w.written().size());
//
// S is amd_signal_t from <hsa/amd_hsa_signal.h>, or any type with these members: `value` (int64), `event_mailbox_ptr`
// (uint64; 0 if no thread sleeps on the signal), `event_id` (uint32), `start_ts` and `end_ts` (uint64). A ROCr signal
// lies in memory that engines reach at the host's addresses, so the address of a member is also its GPU VA.
//
// Timestamps. The engine stores both directly into the signal's `start_ts` and `end_ts`, in ticks of the 100 MHz clock.
// They precede the completion in the queue and must not be read before the completion has been seen (Q10).
//
// Calls are transactional, like the recipes (sync/recipes.hpp): each writes all its packets or none. Errors:
// Errc::bad_packet (a misaligned address, an event_id of more than 28 bits), Errc::no_space. `event_mailbox_ptr` and
// `event_id` are read once, during encoding; they must not change while the signal is in use. A Writer belongs to one
// thread. Nothing here throws or allocates.
#include "sdma/packets/write.hpp"
#include "sdma/sync/recipes.hpp"

#include <cstdint>

namespace sdma::inline v0::hsa {

/// The most dwords that `complete` writes: a timestamp, two fences or an atomic, a fence to the mailbox, and a trap.
inline constexpr std::size_t kCompleteDwords = kDwordsOf<Timestamp, Fence, Fence, Fence, Trap>;
inline constexpr std::size_t kDependDwords = kAcquireZeroDwords;
static_assert(kDwordsOf<Fence, Fence> >= kDwordsOf<Atomic>);

namespace detail {
template <class T> GpuVa member_va(const T& member) noexcept {
  return GpuVa{reinterpret_cast<std::uintptr_t>(&member)};
}
}  // namespace detail

template <class S> GpuVa value_va(const S& s) noexcept { return detail::member_va(s.value); }

/// Holds the queue until the signal is 0: polls its high half, then its low half (Q6, Q8). This is sound because such a
/// signal counts down and then stays at 0.
template <class S> Errc depend(Writer& w, const S& s) noexcept { return acquire_zero(w, value_va(s)); }

/// Stores the node's clock to the signal's `start_ts` once all earlier copies are complete (Q10).
template <class S> Errc stamp_start(Writer& w, const S& s) noexcept {
  return w.put(Timestamp{.addr = detail::member_va(s.start_ts)});
}

struct CompleteOptions {
  /// Does the link from this engine to the signal complete 64-bit atomics? If not, two FENCEs store the current `value`
  /// minus one, which is correct only if no other queue and no host changes the value before they land.
  bool atomics = true;
  bool stamp_end = false;  ///< store the node's clock to the signal's `end_ts` before the completion
};

/// Decrements `value` once all earlier packets are complete (Q3). Then, if a host thread may be asleep on the signal, fills
/// its mailbox and interrupts the host (Q4, Q11).
template <class S> Errc complete(Writer& w, const S& s, const CompleteOptions& options = {}) noexcept {
  const auto woken = [&](const auto&... packets) noexcept {
    if (s.event_mailbox_ptr == 0) return put_all(w, packets...);
    return put_all(w, packets..., Fence{.addr = GpuVa{s.event_mailbox_ptr}, .value = s.event_id}, Trap{s.event_id});
  };
  const auto stamped = [&](const auto&... packets) noexcept {
    if (!options.stamp_end) return woken(packets...);
    return woken(Timestamp{.addr = detail::member_va(s.end_ts)}, packets...);
  };
  const auto va = value_va(s);
  if (options.atomics) return stamped(Atomic{.addr = va, .op = AtomicOp::add_rtn_64, .value = ~std::uint64_t{0}});
  const auto less = static_cast<std::uint64_t>(s.value) - 1;
  return stamped(Fence{.addr = va + 4, .value = high_half(less)}, Fence{.addr = va, .value = low_half(less)});
}

}  // namespace sdma::inline v0::hsa
