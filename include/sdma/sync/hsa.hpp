#pragma once
// How a ROCr signal is raised and awaited by an engine. Templates over the signal: no HSA header is needed, and none is
// included.
//
//   hsa::depend(w, *dep);                                  // nothing below starts before *dep is 0
//   hsa::stamp(w, start);                                  // profiling: the node's clock, now
//   w.copy({.src = a, .dst = b, .bytes = n});
//   hsa::complete(w, *out, {.atomics = link_has_64_bit_atomics, .end_stamp = end});
//   ring.publish(slot, w.written().size());
//
// S is amd_signal_t of <hsa/amd_hsa_signal.h>, or anything with its members: `value` (int64), `event_mailbox_ptr` (uint64,
// 0: nobody sleeps on it), `event_id` (uint32), `start_ts` and `end_ts` (uint64). A ROCr signal lies in memory that engines
// reach by the host's addresses: the address of a member is its VA.
//
// Stamps. A TIMESTAMP packet wants 32-byte alignment. start_ts lies at byte 32 of its 64-byte aligned signal, end_ts at 40:
// an engine can write the first and not the second. So stamps go to words of the caller, 32-byte aligned, one each, and
// `record` copies them to the signal on the host, in ticks of the 100 MHz clock, when the completion was seen: the end
// stamp stands before the completion, and is readable no earlier (Q10).
//
// Transactional like the recipes (sync/recipes.hpp): all packets or none. Errors: Errc::bad_packet (a misaligned address,
// an event_id of more than 28 bits), Errc::no_space. Reads `event_mailbox_ptr` and `event_id` once, when it encodes: they
// do not change while a signal is in use. One thread a Writer; noexcept, no allocation.
#include "sdma/packets/write.hpp"
#include "sdma/sync/recipes.hpp"

#include <cstdint>

namespace sdma {
inline namespace v0 {
namespace hsa {

/// What `complete` needs at most, in dwords: a stamp, two fences or an atomic, mailbox and trap.
inline constexpr std::size_t kCompleteDwords = kDwordsOf<Timestamp, Fence, Fence, Fence, Trap>;
inline constexpr std::size_t kDependDwords = kAcquireZeroDwords;
static_assert(kDwordsOf<Fence, Fence> >= kDwordsOf<Atomic>);

template <class S> GpuVa value_va(const S& s) noexcept { return GpuVa{reinterpret_cast<std::uintptr_t>(&s.value)}; }

/// Holds the queue until the signal is 0: its high half, then its low half (Q6, Q8). The signal counts down and stays at 0.
template <class S> Errc depend(Writer& w, const S& s) noexcept { return acquire_zero(w, value_va(s)); }

/// Stores the node's clock to the 64-bit word at `word`, 32-byte aligned, when the copies before it are done (Q10).
inline Errc stamp(Writer& w, GpuVa word) noexcept { return w.put(Timestamp{.addr = word}); }

struct How {
  /// Does the link from this engine to the signal complete 64-bit atomics? False: two FENCEs store what `value` is now,
  /// less one. That is right only if nobody else changes it before they land: no other queue, no host.
  bool atomics = true;
  GpuVa end_stamp{};  ///< 0: none
};

/// value -= 1 when all earlier packets are done (Q3); then, if a host thread may sleep on the signal, its mailbox and an
/// interrupt (Q4, Q11).
template <class S> Errc complete(Writer& w, const S& s, const How& how = {}) noexcept {
  const auto woken = [&](const auto&... packets) noexcept {
    if (s.event_mailbox_ptr == 0) return put_all(w, packets...);
    return put_all(w, packets..., Fence{.addr = GpuVa{s.event_mailbox_ptr}, .value = s.event_id}, Trap{s.event_id});
  };
  const auto stamped = [&](const auto&... packets) noexcept {
    if (how.end_stamp.value == 0) return woken(packets...);
    return woken(Timestamp{.addr = how.end_stamp}, packets...);
  };
  const auto va = value_va(s);
  if (how.atomics) return stamped(Atomic{.addr = va, .op = AtomicOp::add_rtn_64, .value = ~std::uint64_t{0}});
  const auto less = static_cast<std::uint64_t>(s.value) - 1;
  return stamped(Fence{.addr = va + 4, .value = high_half(less)}, Fence{.addr = va, .value = low_half(less)});
}

/// Host: hands the stamps to whoever asks the signal for its times. After the completion was seen, before the signal is
/// used again.
template <class S> void record(S& s, const std::uint64_t& start, const std::uint64_t& end) noexcept {
  s.start_ts = start;
  s.end_ts = end;
}

}  // namespace hsa
}  // namespace v0
}  // namespace sdma
