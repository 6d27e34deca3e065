// SPDX-License-Identifier: MIT
#pragma once
// Host waits that always end: with the value, or at the deadline with a report of why the value did not come.
//
//   auto v = wait(done, Compare::ge, epoch, Deadline::in(200ms), ring);
//   if (!v) return fail(describe(v.error(), peek));             // "... probably waiting in poll_mem addr=..."
//
//   const WaitCondition all[] = {{a, Compare::ge, 1, ring_a}, {b, Compare::eq, 0, ring_b}};
//   wait_all(all, deadline);                                    // or wait_any: the index of one that holds
//
// How it waits:
//   1  loads the word at once: a wait whose condition already holds costs one load
//   2  spins for kSpins rounds of kPauses pauses, a few microseconds: no system call for work that is nearly complete
//   3  calls the signal's `sleep` hook, if it has one. Otherwise yields kYields times, so that on a machine with few
//      cores the thread that will signal can run, then naps: kFirstNap, doubling up to kLongestNap
// The deadline is checked between all of these steps, and no nap goes past it. Even if the deadline has already passed,
// the word is loaded once.
//
// Ordering: the value that ends a wait was loaded with acquire. The caller sees everything that the engine did before
// its FENCE or ATOMIC, in all memory except VRAM read through the PCIe BAR. A wait never takes rptr for a completion.
//
// 64-bit words written in halves. An ATOMIC changes all 64 bits at once, and every wait for it is sound. A FENCE stores
// 32 bits: between two fences that write one word, the word holds one half of the new value and one half of the old.
//
//   wait for                 sound if
//   eq the final value       no intermediate value, half-written ones included, equals it
//   eq 0, high then low      the word counts down, and its high half was zero already (ROCr: values are small)
//   ge, gt, growing word     the low half is stored first, or the high half does not change
//   le, lt, falling word     the low half is stored first, or the high half does not change
//   ne the old value         never: the first half alone satisfies it
//
// Timelines (sync/timeline.hpp) keep to 32 bits and are sound with one FENCE.
//
// Threads: any thread may wait; with the ring of a single producer, only that producer's thread may (see
// stall_report.hpp). No allocation.
// Errors: a StallReport, by value. Without signals, wait_any fails at once and wait_all succeeds.
#include "sdma/core/compiler.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/condition.hpp"
#include "sdma/sync/signal.hpp"
#include "sdma/sync/stall_report.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace sdma { inline namespace v0_3 {

/// A condition to wait for: `signal func reference`. `ring`: the queue that will signal, for the report.
struct WaitCondition {
  Signal signal{};             ///< whose word is compared
  Compare func = Compare::ge;  ///< the comparison
  std::uint64_t reference{};   ///< what the word is compared with
  RingView ring{};             ///< for the report; empty: it shows no ring
};

/// How `wait` spins, yields and naps, for other loops that wait: call `step` between two checks until it returns false.
///
///   for (Backoff b; !ready();) if (!b.step(deadline)) return Errc::timed_out;
class Backoff {
 public:
  /// First kSpins rounds spin, each for kPauses pauses; then kYields rounds yield; all others nap.
  static constexpr unsigned kSpins = 32, kPauses = 8, kYields = 32;
  /// The first nap. Each later one is twice as long.
  static constexpr std::chrono::nanoseconds kFirstNap = std::chrono::microseconds(10);
  /// The longest nap.
  static constexpr std::chrono::nanoseconds kLongestNap = std::chrono::milliseconds(1);

  /// Waits a little, longer each time. If the deadline has passed, returns false at once.
  [[nodiscard]] bool step(Deadline d) noexcept {
    if (d.passed()) return false;
    if (spinning()) {
      for (unsigned i = 0; i < kPauses; ++i) SDMA_PAUSE();
    } else if (rounds_ < kSpins + kYields) {
      detail::yield();
    } else {
      const auto left = d.left();
      detail::nap(nap_ < left ? nap_ : left);
      nap_ = nap_ * 2 < kLongestNap ? nap_ * 2 : kLongestNap;
      return true;
    }
    ++rounds_;
    return true;
  }
  /// Will the next `step` spin, without a system call?
  [[nodiscard]] bool spinning() const noexcept { return rounds_ < kSpins; }

 private:
  unsigned rounds_ = 0;
  std::chrono::nanoseconds nap_ = kFirstNap;
};

namespace detail {

inline StallReport stalled(const WaitCondition& u, std::uint64_t seen, std::uint64_t read_first) noexcept {
  auto r = u.ring.ring ? u.ring.inspect(u.ring.ring, u.ring.generation) : StallReport{};
  r.signal = u.signal.va;
  r.func = u.func;
  r.reference = u.reference;
  r.seen = seen;
  if (u.ring.ring) r.read_first = read_first;
  return r;
}

/// The slow path of a wait, after the first load.
SDMA_NOINLINE inline Result<std::uint64_t, StallReport> wait_on(const WaitCondition& u, Deadline d) noexcept {
  const auto read_first = u.ring.ring ? u.ring.read(u.ring.ring) : 0;
  Backoff backoff;
  for (;;) {
    const auto v = u.signal.load();
    if (holds(v, u.func, u.reference)) return v;
    if (u.signal.sleep && !backoff.spinning()) {
      if (d.passed()) return stalled(u, v, read_first);
      u.signal.sleep(u.signal.context, u.signal.word, v, d);
    } else if (!backoff.step(d)) {
      return stalled(u, v, read_first);
    }
  }
}

}  // namespace detail

/// Waits for one condition. Returns the value that satisfied it or, if the deadline passed first, the state of its
/// queue.
inline Result<std::uint64_t, StallReport> wait(const WaitCondition& u, Deadline d) noexcept {
  const auto v = u.signal.load();
  if (holds(v, u.func, u.reference)) return v;
  return detail::wait_on(u, d);
}
inline Result<std::uint64_t, StallReport> wait(const Signal& s, Compare func, std::uint64_t reference,
                                               Deadline d) noexcept {
  return wait(WaitCondition{s, func, reference, {}}, d);
}
template <Producers K, class Order>
Result<std::uint64_t, StallReport> wait(const Signal& s, Compare func, std::uint64_t reference, Deadline d,
                                        const Ring<K, Order>& ring) noexcept {
  return wait(WaitCondition{s, func, reference, RingView(ring)}, d);
}

/// Waits for each condition in turn. On success, each condition has held at some moment; if the words are monotone, all
/// of them hold now. The report is about the first condition that did not hold.
inline Result<void, StallReport> wait_all(std::span<const WaitCondition> all, Deadline d) noexcept {
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto v = wait(all[i], d);
    if (v) continue;
    v.error().index = static_cast<std::uint32_t>(i);
    v.error().signals = static_cast<std::uint32_t>(all.size());
    return v.error();
  }
  return {};
}

/// Waits until one of the conditions holds and returns its index; if several hold, the lowest. The report is about the
/// first of `any`. Does not use `sleep` hooks, because a thread can sleep on only one word; it spins, yields and naps
/// instead.
inline Result<std::size_t, StallReport> wait_any(std::span<const WaitCondition> any, Deadline d) noexcept {
  if (any.empty()) {
    StallReport none;
    none.signals = 0;
    return none;
  }
  const auto& first = any.front();
  const auto read_first = first.ring.ring ? first.ring.read(first.ring.ring) : 0;
  for (Backoff backoff;;) {
    for (std::size_t i = 0; i < any.size(); ++i)
      if (holds(any[i].signal.load(), any[i].func, any[i].reference)) return i;
    if (backoff.step(d)) continue;
    auto r = detail::stalled(first, first.signal.load(), read_first);
    r.signals = static_cast<std::uint32_t>(any.size());
    return r;
  }
}

}}  // namespace sdma::v0_3
