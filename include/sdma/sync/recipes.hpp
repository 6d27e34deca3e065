#pragma once
// How a queue says that it is done, and how it waits for another: the idioms, each as one call on a Writer.
//
//   Writer w{slot->dwords};
//   acquire(w, go.low(), epoch);                     // wait: nothing below starts before *go >= epoch
//   w.copy({.src = a, .dst = b, .bytes = n});
//   complete_with_atomic(w, left.va);                // release: *left -= 1 when the copy is performed
//   interrupt(w, {.slot = mailbox, .event = id});    // and wake the host
//
//   release (what is earlier is done)     complete_with_atomic   complete_with_fence   complete_with_two_fences
//   acquire (what is later waits)         acquire   acquire_equal   acquire_zero
//   both, within one queue                full_barrier
//   wake the host                         interrupt, behind a release
//
// A release holds back nothing that is later, an acquire waits for nothing that is earlier (docs/sync.md): `copy A to B;
// complete; copy C to A` is a race, with a full_barrier between the two it is none. A completion must sit in the queue of
// the data that it announces.
//
// Transactional, as the Writer is: all packets of a recipe, or none and an error: Errc::bad_packet (an address is not
// aligned, an event does not fit), Errc::no_space (not k...Dwords left). One thread a Writer; noexcept, no allocation.
#include "sdma/packets/control.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/signal.hpp"

namespace sdma {
inline namespace v0 {

/// Several packets: all, or none.
template <Packet... P> [[gnu::always_inline]] constexpr Errc put_all(Writer& w, const P&... p) noexcept {
  if (!(fits(p) && ...)) return Errc::bad_packet;
  if ((length(p) + ...) > w.room()) return Errc::no_space;
  (static_cast<void>(w.put(p)), ...);
  return Errc::ok;
}

/// Dwords of packets of fixed length: what a slot must have room for.
template <Packet... P> inline constexpr std::size_t kDwordsOf = (layout<P>.length.fixed + ...);
inline constexpr std::size_t kCompleteWithAtomicDwords = kDwordsOf<Atomic>;
inline constexpr std::size_t kCompleteWithFenceDwords = kDwordsOf<Fence>;
inline constexpr std::size_t kCompleteWithTwoFencesDwords = kDwordsOf<Fence, Fence>;
inline constexpr std::size_t kInterruptDwords = kDwordsOf<Fence, Trap>;
inline constexpr std::size_t kAcquireDwords = kDwordsOf<PollMem>;
inline constexpr std::size_t kAcquireZeroDwords = kDwordsOf<PollMem, PollMem>;
inline constexpr std::size_t kFullBarrierDwords = kDwordsOf<Fence, PollMem>;

/// Adds `n` (default: -1) to the 64-bit `word` when every earlier copy, fill and write of this queue is performed. The add
/// is indivisible: several engines may complete into one word, and halves never appear (Q3, X6). Several completions of a
/// queue keep their order (Q4). In host memory it needs a link that completes PCIe AtomicOps: ask the topology, and use a
/// fence where it does not. `word`: 8-byte aligned.
constexpr Errc complete_with_atomic(Writer& w, GpuVa word, std::uint64_t n = ~std::uint64_t{0}) noexcept {
  return w.put(Atomic{.addr = word, .op = AtomicOp::add_rtn_64, .value = n});
}

/// Stores `epoch` when every earlier copy, fill and write of this queue is performed (Q3). One queue a word: of two queues'
/// fences the last wins. Whether Q3 covers WRITE packets is inferred, so end critical data with a copy. `word`: 4-byte
/// aligned; only 32 bits change.
constexpr Errc complete_with_fence(Writer& w, GpuVa word, std::uint32_t epoch) noexcept {
  return w.put(Fence{.addr = word, .value = epoch});
}

/// Stores a 64-bit `value` in two halves, high then low, which stay in this order (Q3, Q4): ROCr's way where the link has
/// no atomics. Between the two a reader may see the new high half with the old low one: wait.hpp says which waits that
/// leaves sound. `word`: 8-byte aligned.
constexpr Errc complete_with_two_fences(Writer& w, GpuVa word, std::uint64_t value) noexcept {
  if (word.value % 8 != 0) return Errc::bad_packet;
  return put_all(w, Fence{.addr = word + 4, .value = high_half(value)}, Fence{.addr = word, .value = low_half(value)});
}

/// Where an interrupt leaves its message for the kernel: the slot of a KFD event, and the event.
struct Mailbox {
  GpuVa slot{};           ///< 4-byte aligned
  std::uint32_t event{};  ///< 28 bits
};

/// Fills the mailbox, then interrupts (Q4, Q11). The kernel ignores an interrupt whose slot is not filled, so the order is
/// the whole point: a TRAP alone is a lost wake-up. Put it behind the completion that the woken thread will look at.
constexpr Errc interrupt(Writer& w, const Mailbox& m) noexcept {
  return put_all(w, Fence{.addr = m.slot, .value = m.event}, Trap{.context = m.event});
}

/// Holds back all that is later in this queue until the dword at `word` >= `epoch`, unsigned (Q6, Q8). It waits for nothing
/// earlier (Q7), and for ever: the host's wait has the deadline. `word`: 4-byte aligned; of a Signal, its low().
constexpr Errc acquire(Writer& w, GpuVa word, std::uint32_t epoch) noexcept {
  return w.put(PollMem{.addr = word, .func = Compare::ge, .reference = epoch});
}
/// The same until the dword equals `value`. A word that moves on before the queue looks hangs it: prefer `acquire`.
constexpr Errc acquire_equal(Writer& w, GpuVa word, std::uint32_t value) noexcept {
  return w.put(PollMem{.addr = word, .func = Compare::eq, .reference = value});
}
/// Holds back all that is later until the 64-bit `word` is zero: its high half, then its low half (Q6, Q8). Two looks, not
/// one: sound for a word that falls to zero and stays there (a counter of what is left, a ROCr signal), and for no other.
/// `word`: 8-byte aligned.
constexpr Errc acquire_zero(Writer& w, GpuVa word) noexcept {
  if (word.value % 8 != 0) return Errc::bad_packet;
  return put_all(w, PollMem{.addr = word + 4}, PollMem{.addr = word});
}

/// Nothing later in this queue starts before everything earlier is performed: FENCE(word, fresh), POLL(word == fresh) (Q3,
/// Q6, Q7). `fresh` must differ from what the word holds, each time: a stale value satisfies the poll before the fence has
/// landed. No other queue may change the word. `word`: 4-byte aligned.
constexpr Errc full_barrier(Writer& w, GpuVa word, std::uint32_t fresh) noexcept {
  return put_all(w, Fence{.addr = word, .value = fresh},
                 PollMem{.addr = word, .func = Compare::eq, .reference = fresh});
}

}  // namespace v0
}  // namespace sdma
