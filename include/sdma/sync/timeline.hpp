// SPDX-License-Identifier: MIT
#pragma once
// Epochs on a signal: values that only grow, so that a past round cannot satisfy a wait for a later one.
//
//   Timeline done{signal, 8};                              // eight completions of +1 make a round
//   auto epoch = done.next();                              // the value of the word when the round is complete
//   for (auto& w : writers) complete_with_atomic(w, signal.va, 1);
//   consumer.put(*done.poll_for(*epoch));                  // an engine waits for the round
//   done.wait(*epoch, Deadline::in(1s), ring);             // the host waits for it
//
//   word   0 ........ 8 ........ 16 ....... 24            last() == 24 after three calls of next()
//            round 1    round 2    round 3
//
// Polls compare 32 bits, unsigned, and do not wrap: past 2^32 - 1, a poll for a small epoch would be satisfied at once,
// and a poll for a large epoch would never be. So a timeline is finite: `next` returns Errc::epoch_overflow rather than
// an epoch above kLastEpoch, and the word never passes it. At a million rounds per second, with one completion each, it
// lasts 71 minutes; `remaining` returns how many rounds are left. `restart` begins again at zero. Call it only when no
// queue can poll an old epoch any more, that is, after you have seen the completion of every queue that waits on this
// timeline.
//
// With one completion per round, complete_with_fence(w, signal.low_va(), epoch) works as well as an atomic +1, provided
// that one queue stores all epochs, in order. With more than one completion, use atomics: if several queues store to
// one word with fences, the last store wins.
//
// Threads: several threads may call `next` at once, and each gets its own epoch. With fences, reserve and publish in
// the order of the epochs. Any thread may wait and read. A Timeline refers to the signal's word and owns nothing.
// Nothing here throws or allocates.
#include "sdma/core/result.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/sync/wait.hpp"

#include <atomic>
#include <cassert>
#include <cstdint>

namespace sdma { inline namespace v0_3 {

class Timeline {
 public:
  static constexpr std::uint64_t kLastEpoch = 0xffffffff;  ///< the last epoch that fits in 32 bits, as a poll compares

  /// Continues from the current value of the word; no completion may be outstanding on it. `completions` >= 1: how many
  /// additions of 1 make an epoch.
  explicit Timeline(const Signal& s, std::uint32_t completions = 1) noexcept
      : signal_(s), completions_(completions), last_(s.load()) {
    assert(completions != 0);
  }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// The signal whose word counts the completions.
  [[nodiscard]] const Signal& signal() const noexcept { return signal_; }
  /// How many additions of 1 complete an epoch.
  [[nodiscard]] std::uint32_t completions() const noexcept { return completions_; }
  /// The last epoch that `next` returned; before the first call, the value that the word began with.
  [[nodiscard]] std::uint64_t last() const noexcept { return last_.load(std::memory_order_relaxed); }
  /// How many epochs are left.
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    const auto last = this->last();
    return last > kLastEpoch ? 0 : (kLastEpoch - last) / completions_;
  }

  /// The next epoch, or epoch_overflow: restart first.
  Result<std::uint64_t> next() noexcept {
    auto last = this->last();
    do {
      if (last > kLastEpoch || kLastEpoch - last < completions_) return Errc::epoch_overflow;
    } while (!last_.compare_exchange_weak(last, last + completions_, std::memory_order_relaxed));
    return last + completions_;
  }

  /// A packet that holds a queue until `epoch` is complete; epoch_overflow if it does not fit in 32 bits.
  Result<PollMem> poll_for(std::uint64_t epoch) const noexcept {
    if (epoch > kLastEpoch) return Errc::epoch_overflow;
    return PollMem{.addr = signal_.low_va(), .func = Compare::ge, .reference = low_half(epoch)};
  }

  /// Is `epoch` complete? Loads the word with acquire.
  [[nodiscard]] bool reached(std::uint64_t epoch) const noexcept { return signal_.load() >= epoch; }

  /// Waits until `epoch` is complete. Returns the value of the word, which is `epoch` or later; or a report of why that
  /// value did not come.
  Result<std::uint64_t, StallReport> wait(std::uint64_t epoch, Deadline d) const noexcept {
    return sdma::wait(signal_, Compare::ge, epoch, d);
  }
  template <Producers K, class Order>
  Result<std::uint64_t, StallReport> wait(std::uint64_t epoch, Deadline d, const Ring<K, Order>& ring) const noexcept {
    return sdma::wait(signal_, Compare::ge, epoch, d, ring);
  }

  /// Begins again at zero, and resets the word. bad_argument while the last epoch is not complete. The caller must know
  /// that no queue still waits on this timeline: the word does not show it.
  [[nodiscard]] Errc restart() noexcept {
    if (!reached(last())) return Errc::bad_argument;
    signal_.set(0);
    last_.store(0, std::memory_order_relaxed);
    return Errc::ok;
  }

 private:
  Signal signal_;
  std::uint32_t completions_;
  std::atomic<std::uint64_t> last_;
};

}}  // namespace sdma::v0_3
