// SPDX-License-Identifier: MIT
#pragma once
// What all parts of a run use: its schedule and options, its deadline, and what it has found. Internal.
//
//   RunState run{bound, options};
//   run.add("host main", "its thread cannot be created");      // a finding
//   if (run.stop || run.fault()) return;                       // another thread has given up; a queue or rank is lost
//   run.report()                                               // of the whole run
//
// Any thread may call anything but report().
#include "../device/held_queues.hpp"
#include "live_memory.hpp"
#include "old_bytes.hpp"
#include "sdma/schedule/run.hpp"
#include "sums.hpp"
#include "team.hpp"

#include <atomic>
#include <mutex>

namespace sdma { inline namespace v0_3 { namespace detail {

class RunState {
 public:
  RunState(const Bound&, const RunOptions&);

  const Bound& bound;
  const Schedule& schedule;
  const RunOptions& options;
  Deadline deadline;
  OldBytes old{bound};
  LiveMemory live{bound};
  Team* const team;                    ///< null: this process is the only one
  std::unique_ptr<HeldQueues> held{};  ///< of an adversarial run: nothing moves without a turn, until all is compared
  std::optional<HeldNetwork> held_network{};  ///< the same of its queues between nodes
  std::atomic<bool> stop = false;             ///< every thread ends, in all ranks

  void add(std::string where, std::string message, std::string hint = "", std::string excerpt = "");
  void add_wrong(std::uint64_t bytes);
  RunReport& report() noexcept { return report_; }

  /// The run has begun.
  void begins();
  /// Has the time passed, or has the caller ended the run? A thread that waits asks every 20 ms. Cheap if another call
  /// was less than 20 ms ago.
  bool over();
  bool ended() const noexcept { return ended_; }
  /// How long the run has taken when it is over: the time limit, or less.
  std::chrono::milliseconds spent() const;
  /// Reports the device's faults, if there are any, and a rank that has ended or stopped.
  bool fault();
  /// Describes every queue that has not read everything that was published.
  std::string queues() const;
  /// Makes the host's stores to GPU memory visible to engines, and engines' stores visible to the host.
  void flush_host_path() const;

  /// Why a thread at this place cannot access these bytes: memory that is gone, or not there yet. "" if it can.
  std::string gone(const Schedule::Range& left, const Schedule::Range& right, const Schedule::Sum& sum, Place) const;

  /// What an action or an expectation expects; `sum` is room for it.
  template <class Expects> std::span<const std::byte> expected(const Expects& e, std::vector<std::byte>& sum) const {
    if (!e.sum) return expected(e.right, e.old);
    return sum = added(e.sum, [&](const auto& part) { return expected(part, e.old); });
  }

 private:
  std::span<const std::byte> expected(const Schedule::Range& right, bool is_old) const {
    return is_old ? old.bytes(right) : bound.bytes(right);
  }

  /// What queues have read and signals hold; nothing moves while it stays the same.
  std::uint64_t mark() const;

  std::atomic<bool> ended_ = false;
  Deadline::Clock::time_point begin_ = Deadline::Clock::now(), moved_ = begin_;
  std::uint64_t mark_ = 0;
  std::atomic<Deadline::Clock::rep> next_look_ = 0;
  std::atomic<bool> lost_ = false;     ///< the loss of a rank has been reported
  std::atomic<bool> trouble_ = false;  ///< what is wrong with the network has been reported
  std::mutex mutex_;
  RunReport report_;
};

}}}  // namespace sdma::v0_3::detail
