// SPDX-License-Identifier: MIT
#pragma once
// The faults of a device that finds them itself: those not returned by a wait yet, and the one that stopped each queue.
//
//   log.add(fault);                  // from an engine; wakes a waiter
//   log.wait(deadline)               // the oldest that no call has returned yet
//   log.of(queue)                    // why this queue stopped
//
// Keeps at most 4096 faults for `wait`, and counts those that it dropped. Any thread; internal. Errors: timed_out.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/engine/fault.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace sdma::inline v0::detail {

class FaultLog {
 public:
  void add(const Fault& f) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (f.kind != FaultKind::poll_timeout && !f.anonymous) stopped_.emplace(f.queue, f);
      if (untold_.size() < kMost) untold_.push_back(f);
      else ++lost_;
    }
    came_.notify_all();
  }
  Result<Fault> wait(Deadline d) noexcept {
    std::unique_lock lock(mutex_);
    while (untold_.empty()) {
      if (d.passed()) return Errc::timed_out;
      came_.wait_until(lock, std::min(d.at, Deadline::in(std::chrono::hours(1)).at));
    }
    const auto f = untold_.front();
    untold_.pop_front();
    return f;
  }
  std::optional<Fault> of(std::uint64_t queue) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = stopped_.find(queue);
    if (at == stopped_.end()) return {};
    return at->second;
  }
  void forget(std::uint64_t queue) noexcept {
    const std::lock_guard lock(mutex_);
    stopped_.erase(queue);
  }
  std::uint64_t lost() const noexcept {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  static constexpr std::size_t kMost = 4096;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Fault> untold_;
  std::unordered_map<std::uint64_t, Fault> stopped_;
  std::uint64_t lost_ = 0;
};

}  // namespace sdma::inline v0::detail
