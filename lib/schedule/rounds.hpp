// SPDX-License-Identifier: MIT
#pragma once
// What begins and ends a round of a schedule: the rule of simulate.hpp, for runs and simulations. Internal.
//
// A round begins with the first `set` after the last wait, or with the first submit if there is no such `set`, and ends
// with the waits of the first host thread that follow. Kernels continue after the waits of the host, so a run with
// kernels is one round, from its first action to its end.
//
//   RoundRule<double> rule{kernels};
//   rule.begins(by_set, now)      // a submit, a set, or an action of a kernel: true if a round begins with it
//   rule.waited(now)              // a wait of the first host thread has ended
//   rule.ended(now)               // the run has ended
//   rule.last()                   // begin and end; nothing if no round has ended
//
// A RoundRule belongs to one thread. Any thread may call the functions of Rounds, which times a run.
#include "sdma/core/deadline.hpp"

#include <chrono>
#include <mutex>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class Time> class RoundRule {
 public:
  struct Round {
    Time begin{}, end{};
  };
  /// `whole`: the run is one round, because it has kernels.
  explicit RoundRule(bool whole) noexcept : whole_(whole) {}

  bool begins(bool by_set, Time now) noexcept {
    if (open_ && (whole_ || (!waited_ && (by_set_ || !by_set)))) return false;
    open_ = true;
    waited_ = false;
    by_set_ = by_set;
    begin_ = now;
    return true;
  }
  /// False if the wait ends no round.
  bool waited(Time now) noexcept {
    if (!open_ || whole_) return false;
    waited_ = true;
    last_ = {begin_, now};
    return true;
  }
  /// Ends a round that no wait has ended.
  void ended(Time now) noexcept {
    if (unended()) last_ = {begin_, now}, waited_ = true;
  }

  bool is_whole() const noexcept { return whole_; }
  /// Has a round begun that has not ended? And was that by a set?
  bool unended() const noexcept { return open_ && !waited_; }
  bool triggered() const noexcept { return unended() && by_set_; }
  /// Would the next action that begins a round make `last` one that is complete?
  bool complete() const noexcept { return open_ && waited_; }
  const std::optional<Round>& last() const noexcept { return last_; }

 private:
  bool whole_;
  bool open_ = false, by_set_ = false, waited_ = false;
  Time begin_{};
  std::optional<Round> last_{};
};

class Rounds {
 public:
  using Clock = Deadline::Clock;
  explicit Rounds(bool kernels) noexcept : rule_(kernels) {}

  void begins(bool by_set) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    rule_.begins(by_set, now);
  }
  void waited() {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    rule_.waited(now);
  }
  /// The run has ended. Without kernels, only a wait ends a round: engines may still be at work.
  void ended() {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (rule_.is_whole()) rule_.ended(now);
  }
  /// 0 if no round has ended.
  std::chrono::nanoseconds last() const {
    const std::lock_guard lock(mutex_);
    return rule_.last() ? rule_.last()->end - rule_.last()->begin : std::chrono::nanoseconds{};
  }

 private:
  mutable std::mutex mutex_;
  RoundRule<Clock::time_point> rule_;
};

}}}  // namespace sdma::v0_3::detail
