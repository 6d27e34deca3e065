// SPDX-License-Identifier: MIT
#pragma once
// The last round of a run, by the rule of simulate.hpp: it begins with the first `set` after the last wait, or with the
// first submit if there is no such `set`, and ends with the waits of the first host thread that follow. Internal.
//
//   Rounds rounds;
//   rounds.submits();      rounds.sets();      rounds.waited();       // each at the moment that it happens
//   rounds.last()                                                     // 0 if no wait has ended a round
//
// Any thread may call these functions.
#include "sdma/core/deadline.hpp"

#include <chrono>
#include <mutex>

namespace sdma::inline v0::detail {

class Rounds {
 public:
  using Clock = Deadline::Clock;

  void submits() { begins(false); }
  void sets() { begins(true); }
  /// A wait of the first host thread has ended.
  void waited() {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    waited_ = true;
    last_ = now - begin_;
  }
  std::chrono::nanoseconds last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  void begins(bool by_set) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (waited_) open_ = waited_ = false;
    if (open_ && (by_set_ || !by_set)) return;
    open_ = true;
    by_set_ = by_set;
    begin_ = now;
  }

  mutable std::mutex mutex_;
  bool open_ = false, by_set_ = false, waited_ = false;
  Clock::time_point begin_{};
  std::chrono::nanoseconds last_{};
};

}  // namespace sdma::inline v0::detail
