// SPDX-License-Identifier: MIT
#pragma once
// How a queue signals completion, and how it waits for another queue: each idiom is one call on a Writer.
//
//   Writer w{slot->dwords};
//   acquire(w, go.low_va(), epoch);                     // wait: nothing below starts before *go >= epoch
//   w.copy({.src = a, .dst = b, .bytes = n});
//   complete_with_atomic(w, left.va);                // release: *left -= 1 once the copy is complete
//   interrupt(w, {.slot = mailbox, .event = id});    // and wake the host
//
//   release (earlier packets complete)    complete_with_atomic   complete_with_fence   complete_with_two_fences
//   acquire (later packets wait)          acquire   acquire_equal   acquire_zero
//   both, within one queue                full_barrier
//   wake the host                         interrupt, after a release
//
// A release does not hold back later packets, and an acquire does not wait for earlier ones (docs/sync.md):
// `copy A to B; complete; copy C to A` is a race, and a full_barrier between the two copies removes it. A completion
// covers only the packets of its own queue. Ids such as Q3 and X6 name rules of docs/ordering.md.
//
// Recipes are transactional, like the Writer: a recipe writes all its packets, or it writes none and returns an error.
// Errc::bad_packet: an address is misaligned or an event id does not fit. Errc::no_space: the Writer has less room than
// the recipe needs (dwords_of). The Writer's error() includes them. A Writer belongs to one thread. Nothing here throws
// or allocates.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/signal.hpp"

namespace sdma { inline namespace v0_3 {

/// Writes all of these packets, or none: BasicWriter::put_all.
template <class T, class... P> SDMA_ALWAYS_INLINE constexpr Errc put_all(BasicWriter<T>& w, const P&... p) noexcept {
  return w.put_all(p...);
}
/// The fence of a completion: from 5.0 on with the memory type of uncached memory, as runtimes write it.
constexpr Fence completion_fence(Generation g, GpuVa word, std::uint32_t value) noexcept {
  constexpr std::uint8_t kUncached = 3;
  Fence f{.addr = word, .value = value};
  if (g >= Generation::v5_0) f.mtype = kUncached;
  return f;
}
template <class T> constexpr Fence completion_fence(const BasicWriter<T>& w, GpuVa word, std::uint32_t value) noexcept {
  return completion_fence(w.generation(), word, value);
}

/// Deprecated: dwords_of<P...>().
template <Packet... P>
[[deprecated("use dwords_of<P...>()")]] inline constexpr std::size_t kDwordsOf = dwords_of<P...>();
// Deprecated, as are those of hsa.hpp: ask dwords_of what a callable writes, or let Submission::with do so.
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kCompleteWithAtomicDwords = dwords_of<Atomic>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kCompleteWithFenceDwords = dwords_of<Fence>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kCompleteWithTwoFencesDwords = dwords_of<Fence, Fence>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kInterruptDwords = dwords_of<Fence, Trap>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kAcquireDwords = dwords_of<PollMem>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kAcquireZeroDwords = dwords_of<PollMem, PollMem>();
/// Deprecated.
[[deprecated("use dwords_of")]] inline constexpr std::size_t kFullBarrierDwords = dwords_of<Fence, PollMem>();

/// Adds `n` (default: -1) to the 64-bit `word` once every earlier copy, fill and write of this queue is complete. The
/// addition is atomic: several engines may signal one word, and no reader sees half of a value (Q3, X6). The
/// completions of one queue stay in order (Q4). For a word in host memory, the link must complete PCIe AtomicOps: call
/// Topology::completion, and use a fence if the link does not. `word`: 8-byte aligned.
template <class T>
constexpr Errc complete_with_atomic(BasicWriter<T>& w, GpuVa word, std::uint64_t n = ~std::uint64_t{0}) noexcept {
  return w.put(Atomic{.addr = word, .op = AtomicOp::add_rtn_64, .value = n});
}

/// Stores `epoch` once every earlier copy, fill and write of this queue is complete (Q3). Use one word per queue: if
/// two queues store to one word with fences, the last store wins. That Q3 covers WRITE packets is inferred, so move
/// critical data with copies. `word`: 4-byte aligned; only 32 bits change.
template <class T> constexpr Errc complete_with_fence(BasicWriter<T>& w, GpuVa word, std::uint32_t epoch) noexcept {
  return w.put(completion_fence(w, word, epoch));
}

/// Stores a 64-bit `value` in two halves, first the high half and then the low half (Q3, Q4). ROCr does so if the link
/// has no atomics. Between the two stores, a reader may see the new high half with the old low half; wait.hpp lists the
/// waits that are still sound. `word`: 8-byte aligned.
template <class T>
constexpr Errc complete_with_two_fences(BasicWriter<T>& w, GpuVa word, std::uint64_t value) noexcept {
  if (word.value % 8 != 0) return w.fail(Errc::bad_packet);
  return put_all(w, completion_fence(w, word + 4, high_half(value)), completion_fence(w, word, low_half(value)));
}

/// Where an interrupt leaves its message for the kernel: the mailbox slot of a KFD event, and the event's id.
struct Mailbox {
  GpuVa slot{};           ///< 4-byte aligned
  std::uint32_t event{};  ///< 28 bits
};

/// Fills the mailbox, then interrupts the host (Q4, Q11). The order matters: the kernel ignores an interrupt whose slot
/// is not filled yet, so a TRAP without the fence is a lost wake-up. Call `interrupt` after the completion that the
/// woken thread will check.
template <class T> constexpr Errc interrupt(BasicWriter<T>& w, const Mailbox& m) noexcept {
  return put_all(w, completion_fence(w, m.slot, m.event), Trap{.context = m.event});
}

/// Holds back all later packets of this queue until the dword at `word` is >= `epoch`, unsigned (Q6, Q8). It does not
/// wait for earlier packets (Q7). It retries forever, so put the deadline on the host's wait. `word`: 4-byte aligned;
/// for a Signal, its low_va().
template <class T> constexpr Errc acquire(BasicWriter<T>& w, GpuVa word, std::uint32_t epoch) noexcept {
  return w.put(PollMem{.addr = word, .func = Compare::ge, .reference = epoch});
}
/// Like `acquire`, but until the dword equals `value`. The queue hangs if the word changes again before the engine
/// reads it, so prefer `acquire`.
template <class T> constexpr Errc acquire_equal(BasicWriter<T>& w, GpuVa word, std::uint32_t value) noexcept {
  return w.put(PollMem{.addr = word, .func = Compare::eq, .reference = value});
}
/// Holds back all later packets until the 64-bit `word` is zero: polls its high half, then its low half (Q6, Q8). The
/// two halves are read separately. That is sound only if the word falls to zero and stays there, as a count of
/// remaining packets or a ROCr signal does. `word`: 8-byte aligned.
template <class T> constexpr Errc acquire_zero(BasicWriter<T>& w, GpuVa word) noexcept {
  if (word.value % 8 != 0) return w.fail(Errc::bad_packet);
  return put_all(w, PollMem{.addr = word + 4}, PollMem{.addr = word});
}

/// No later packet of this queue starts before all earlier ones are complete: writes a FENCE that stores `fresh`, and
/// then a poll until the word equals `fresh` (Q3, Q6, Q7). Each time, `fresh` must differ from the word's current
/// value; otherwise the stale value satisfies the poll before the fence has landed. No other queue may change the word.
/// `word`: 4-byte aligned.
template <class T> constexpr Errc full_barrier(BasicWriter<T>& w, GpuVa word, std::uint32_t fresh) noexcept {
  return put_all(w, completion_fence(w, word, fresh), PollMem{.addr = word, .func = Compare::eq, .reference = fresh});
}

}}  // namespace sdma::v0_3
