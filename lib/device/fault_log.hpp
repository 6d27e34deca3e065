// SPDX-License-Identifier: MIT
#pragma once
// The faults of a device: those not returned by a wait yet, and the one that stopped each queue.
//
//   log.add(fault);                  // from an engine; wakes a waiter
//   log.wait(deadline)               // the oldest that no call has returned yet
//   log.of(queue)                    // why this queue stopped
//   log.of_gpu(gpu)                  // the first fault of that GPU that a kernel driver reported, without a queue
//
// Keeps at most 4096 faults for `wait`, and counts those that it dropped. Any thread; internal. Errors: timed_out.
#include "../core/await_change.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/engine/fault.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class FaultLog {
 public:
  void add(const Fault& f) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (f.kind != FaultKind::poll_timeout && !f.anonymous) stopped_.emplace(f.queue, f);
      if (f.anonymous && of_gpu_locked(f.gpu) == anonymous_.end()) anonymous_.push_back(f);
      if (untold_.size() < kMost) untold_.push_back(f);
      else ++lost_;
    }
    came_.notify_all();
  }
  Result<Fault> wait(Deadline d) noexcept {
    std::unique_lock lock(mutex_);
    while (untold_.empty()) {
      if (d.passed()) return Errc::timed_out;
      await_change(came_, lock, d);
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
  std::optional<Fault> of_gpu(GpuId g) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = of_gpu_locked(g);
    if (at == anonymous_.end()) return {};
    return *at;
  }
  std::optional<Fault> of_any_gpu() const noexcept {
    const std::lock_guard lock(mutex_);
    if (anonymous_.empty()) return {};
    return anonymous_.front();
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
  std::vector<Fault>::const_iterator of_gpu_locked(GpuId g) const noexcept {
    return std::find_if(anonymous_.begin(), anonymous_.end(), [&](const Fault& f) { return f.gpu == g; });
  }
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Fault> untold_;
  std::unordered_map<std::uint64_t, Fault> stopped_;
  std::vector<Fault> anonymous_;  ///< the first of each GPU
  std::uint64_t lost_ = 0;
};

}}}  // namespace sdma::v0_3::detail
