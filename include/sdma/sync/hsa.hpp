// SPDX-License-Identifier: MIT
#pragma once
// How an engine waits for a ROCr signal, and how it completes one. The functions are templates over the signal type, so
// no HSA header is needed or included.
//
//   hsa::depend(w, *dep);                                  // nothing below starts before *dep is 0
//   hsa::stamp_start(w, *out);                             // profiling: the node's clock, now
//   w.copy({.src = a, .dst = b, .bytes = n});
//   hsa::complete_signal(w, *out, {.atomics = link_has_64_bit_atomics, .stamp_end = true});
//   ring.publish(slot, w.written().size());
//
// S is amd_signal_t from <hsa/amd_hsa_signal.h>, or any type with these members: `value` (int64), `event_mailbox_ptr`
// (uint64; 0 if no thread sleeps on the signal), `event_id` (uint32), `start_ts` and `end_ts` (uint64). A ROCr signal
// lies in memory that engines reach at the host's addresses, so the address of a member is also its GPU VA. For a type
// of your own, overload value_va, start_stamp_va and end_stamp_va beside it: a copy of a signal that was read once, or
// a signal that engines reach elsewhere (integration/runtime/signal.hpp).
//
// Timestamps. The engine stores both directly into the signal's `start_ts` and `end_ts`, in ticks of the 100 MHz clock.
// They precede the completion in the queue and must not be read before the completion has been seen (Q10). A
// runtime that keeps its stamps elsewhere names the words: stamp(w, va), and CompleteOptions::stamp_end_at. 8-byte
// alignment is enough.
//
// Halves. An engine compares and stores 32 bits. Signals of ROCr are small, so a runtime may leave the high half alone:
// Halves::low if it knows that the high half is 0, Halves::by_value to let the value decide while it is encoded. ROCr
// does the latter.
//
// Gangs. One copy, cut over the queues of several engines, with one completion:
//
//   member i   w.copy(share(copy, i, n));  hsa::complete_signal(w, *item[i]);  each item begins at 2, without a mailbox
//   leader     w.copy(share(copy, 0, n));  for each i: hsa::join(w, *item[i]);  hsa::complete_signal(w, *out);
//
// `join` waits until the item is 1 and makes it 0. Only then, after the last access of an engine, may the host
// destroy the item. Give each queue of a gang an engine of its own: the pending poll of a leader may keep its
// engine from a member.
//
// Generations. The Writer chooses that of the packets. From 5.0 on, fences have the memory type of uncached memory.
//
// Calls are transactional, like the recipes (sync/recipes.hpp): each writes all its packets or none. Errors:
// Errc::bad_packet (a misaligned address, an event_id of more than 28 bits), Errc::no_space. `event_mailbox_ptr` and
// `event_id` are read once, during encoding; they must not change while the signal is in use. A Writer belongs to one
// thread. Nothing here throws or allocates.
#include "sdma/packets/write.hpp"
#include "sdma/sync/recipes.hpp"

#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace hsa {

/// `complete_signal`: a timestamp, two fences or an atomic, a fence to the mailbox, and a trap. For dwords_of.
inline constexpr AtMost kCompleteAtMost{dwords_of<Timestamp, Fence, Fence, Fence, Trap>()};
/// `depend`, without and with `twice`.
inline constexpr AtMost kDependAtMost{dwords_of<PollMem, PollMem>()}, kDependTwiceAtMost{2 * kDependAtMost.dwords};
/// `join`; without atomics, it writes fewer.
inline constexpr AtMost kJoinAtMost{dwords_of<PollMem, Atomic>()};
static_assert(dwords_of<Fence, Fence>() >= dwords_of<Atomic>());
// Deprecated: dwords_of(kCompleteAtMost) and so on.
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kCompleteDwords = kCompleteAtMost.dwords;
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kDependDwords = kDependAtMost.dwords;
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kDependTwiceDwords = kDependTwiceAtMost.dwords;
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kJoinDwords = kJoinAtMost.dwords;

namespace detail {
template <class T> GpuVa member_va(const T& member) noexcept { return GpuVa::of(&member); }
}  // namespace detail

/// The address of a signal's value.
template <class S> GpuVa value_va(const S& s) noexcept { return detail::member_va(s.value); }
/// The address of the word for its first time stamp.
template <class S> GpuVa start_stamp_va(const S& s) noexcept { return detail::member_va(s.start_ts); }
/// The address of the word for its second time stamp.
template <class S> GpuVa end_stamp_va(const S& s) noexcept { return detail::member_va(s.end_ts); }

/// Which halves of a signal's value are polled, or stored with fences.
enum class Halves : std::uint8_t {
  both,      ///< the high half, then the low half
  low,       ///< the low half alone: the caller knows that the high half is 0
  by_value,  ///< `both` if the high half is not 0 during encoding, otherwise `low`. If the value is 0: no poll at all
};

/// How `depend` polls a signal.
struct DependOptions {
  Halves halves = Halves::both;  ///< which halves it polls
  /// Polls each half twice. ROCr does so on gfx900 to gfx908, where a poll may end too early.
  bool twice = false;
};

/// Holds the queue until the signal is 0: polls its high half, then its low half (Q6, Q8). This is sound because such a
/// signal counts down and then stays at 0. For the same reason, Halves::by_value is sound whenever the value is read.
template <class T, class S>
SDMA_ALWAYS_INLINE inline Errc depend(BasicWriter<T>& w, const S& s, const DependOptions& options = {}) noexcept {
  const auto va = value_va(s);
  if (va.value % 8 != 0) return w.fail(Errc::bad_packet);
  const auto value = static_cast<std::uint64_t>(s.value);
  const bool by_value = options.halves == Halves::by_value;
  const bool poll_low = !by_value || value != 0;
  const bool poll_high = options.halves == Halves::both || (by_value && high_half(value) != 0);
  const PollMem high{.addr = va + 4}, low{.addr = va};
  return put_all(w, When{poll_high, high}, When{poll_high && options.twice, high}, When{poll_low, low},
                 When{poll_low && options.twice, low});
}

/// Stores the node's clock to an 8-byte aligned word once all earlier copies are complete (Q10).
template <class T> constexpr Errc stamp(BasicWriter<T>& w, GpuVa word) noexcept {
  return w.put(Timestamp{.addr = word});
}
/// The same, to the signal's `start_ts`.
template <class T, class S> Errc stamp_start(BasicWriter<T>& w, const S& s) noexcept {
  return stamp(w, start_stamp_va(s));
}

struct CompleteOptions {
  /// Does the link from this engine to the signal complete 64-bit atomics? If not, two FENCEs store the current `value`
  /// minus one, which is correct only if no other queue and no host changes the value before they land.
  bool atomics = true;
  bool stamp_end = false;  ///< store the node's clock to the signal's `end_ts` before the completion
  GpuVa stamp_end_at{};    ///< not 0: store it to this word instead
  /// Without atomics: which halves the fences store. Halves::by_value stores one half if the high half is 0 before and
  /// after the decrement. (At 2^32, ROCr stores the low half alone, and the high half stays 1.)
  Halves fences = Halves::both;
};

/// Decrements `value` once all earlier packets are complete (Q3). Then, if a host thread may be asleep on the signal,
/// fills its mailbox and interrupts the host (Q4, Q11).
template <class T, class S>
SDMA_ALWAYS_INLINE inline Errc complete_signal(BasicWriter<T>& w, const S& s,
                                               const CompleteOptions& options = {}) noexcept {
  const auto va = value_va(s);
  const auto value = static_cast<std::uint64_t>(s.value), less = value - 1;
  const bool small = high_half(value | less) == 0, fences = !options.atomics;
  const bool high = fences && options.fences != Halves::low && !(options.fences == Halves::by_value && small);
  const bool stamped = options.stamp_end || options.stamp_end_at != GpuVa{}, woken = s.event_mailbox_ptr != 0;
  const auto stamp_at = options.stamp_end_at != GpuVa{} ? options.stamp_end_at : end_stamp_va(s);
  return put_all(
      w, When{stamped, Timestamp{.addr = stamp_at}},
      When{options.atomics, Atomic{.addr = va, .op = AtomicOp::add_rtn_64, .value = ~std::uint64_t{0}}},
      When{high, completion_fence(w, va + 4, high_half(less))}, When{fences, completion_fence(w, va, low_half(less))},
      When{woken, completion_fence(w, GpuVa{s.event_mailbox_ptr}, s.event_id)}, When{woken, Trap{s.event_id}});
}

/// Deprecated: complete_signal.
template <class T, class S>
[[deprecated("use complete_signal")]] Errc complete(BasicWriter<T>& w, const S& s,
                                                    const CompleteOptions& o = {}) noexcept {
  return complete_signal(w, s, o);
}

/// Share `i` of a copy that `n` queues make together. Shares are multiples of `unit` bytes, except the last one; those
/// after it are empty (bytes = 0: copy nothing, and leave them out of the gang). unit = 1 divides as ROCr does.
constexpr Writer::Copy share(const Writer::Copy& c, std::size_t i, std::size_t n, std::uint32_t unit = 64) noexcept {
  if (c.bytes == 0 || n == 0 || unit == 0) return {c.src, c.dst, 0, c.chunk};
  if (n == 1) return i == 0 ? c : Writer::Copy{c.src + c.bytes, c.dst + c.bytes, 0, c.chunk};
  const auto units = (c.bytes - 1) / unit + 1;
  const auto each = ((units - 1) / n + 1) * unit;
  const auto at = i <= c.bytes / each ? i * each : c.bytes;
  const auto left = c.bytes - at;
  return {c.src + at, c.dst + at, left < each ? left : each, c.chunk};
}

/// The leader of a gang: holds the queue until a member has completed its `item` (its value is 1), then makes it 0. The
/// completion of the leader comes after all joins. `atomics` as for `complete_signal`.
template <class T, class S> Errc join(BasicWriter<T>& w, const S& item, bool atomics = true) noexcept {
  const auto va = value_va(item);
  const PollMem member_complete{.addr = va, .reference = 1};
  if (!atomics) return put_all(w, member_complete, completion_fence(w, va, 0));
  return put_all(w, member_complete, Atomic{.addr = va, .op = AtomicOp::add_rtn_64, .value = ~std::uint64_t{0}});
}

}}}  // namespace sdma::v0_3::hsa
