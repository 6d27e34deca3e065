// SPDX-License-Identifier: MIT
#pragma once
// The queues and host threads of an adversarial device that sleep on purpose, and the order in which they wake.
//
//   Nap nap{seed, stream};                          // one per queue; a host thread makes one when it needs it
//   while (!sleepers.ends(nap)) ...                 // the first call begins the nap; ask again after kCheck at most
//   sleepers.activity();                            // after a round that made progress, and after an action of a host
//
//   all others run --> they are done, or stuck --> quiet for kQuiet --> one nap ends --> quiet again --> the next ...
//
// A race between queues shows only if one of them is late: not by a moment, but until everything else has happened that
// can happen without it. So a nap ends only when the whole node is quiet. Then one sleeper wakes, that of the lowest
// rank, and the others sleep on until the node is quiet again. The rank of a nap depends on its seed alone. No nap is
// longer than kLongest, and a node that is stuck is quiet: so a nap delays work, and never prevents it.
//
// Quiet is a matter of time: a thread that does not get a core for kQuiet looks like one that is stuck. The result is
// then another order, not an error. Any thread may call any function; a Nap belongs to one thread at a time, and its
// destructor ends it. After a fork, the child must not call `ends`. No allocation; no errors.
#include "../engine/sleepiness.hpp"
#include "sdma/core/deadline.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

class Sleepers;

class Nap {
 public:
  Nap(std::uint64_t seed, std::uint64_t stream) noexcept : ranks_(seed, stream) {}
  ~Nap();
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;

 private:
  friend Sleepers;
  enum class State : std::uint8_t { none, sleeps, called };

  Seeded ranks_;
  Sleepers* bed_{};  ///< while it sleeps; the rest is guarded by the mutex of this
  Nap* next_{};
  std::uint32_t rank_{};
  Deadline longest_{};
  State state_ = State::none;
};

class Sleepers {
 public:
  static constexpr std::chrono::microseconds kQuiet{300}, kCheck{100}, kLongest{10'000};

  void activity() noexcept { activity_.fetch_add(1, std::memory_order_relaxed); }

  /// Is the nap over? Otherwise it begins, or continues.
  bool ends(Nap& n) noexcept {
    const std::lock_guard lock(mutex_);
    const auto now = Deadline::Clock::now();
    if (n.state_ == Nap::State::none) {
      n.bed_ = this;
      n.rank_ = n.ranks_.choose(Choice::schedule, 1'000'000'000);
      n.longest_ = Deadline{now + kLongest};
      n.state_ = Nap::State::sleeps;
      if (!first_) since_ = now;
      n.next_ = std::exchange(first_, &n);
    }
    if (const auto active = activity_.load(std::memory_order_relaxed); active != seen_) {
      seen_ = active;
      since_ = now;
    } else if (now - since_ >= kQuiet) {
      call_next();
      since_ = now;
    }
    if (n.state_ == Nap::State::sleeps && !n.longest_.passed()) return false;
    leave(n);
    return true;
  }

 private:
  friend Nap;
  void call_next() noexcept {
    Nap* next = nullptr;
    for (auto* n = first_; n; n = n->next_)
      if (!next || n->rank_ < next->rank_) next = n;
    if (!next) return;
    unlink(*next);
    next->state_ = Nap::State::called;
  }
  void unlink(Nap& n) noexcept {
    for (auto** at = &first_; *at; at = &(*at)->next_)
      if (*at == &n) {
        *at = n.next_;
        return;
      }
  }
  void leave(Nap& n) noexcept {
    unlink(n);
    n.state_ = Nap::State::none;
  }

  std::mutex mutex_;
  std::atomic<std::uint64_t> activity_{0};
  // Guarded by the mutex.
  Nap* first_ = nullptr;
  std::uint64_t seen_ = 0;  ///< the activity at `since_`
  Deadline::Clock::time_point since_{};
};

inline Nap::~Nap() {
  if (!bed_) return;
  const std::lock_guard lock(bed_->mutex_);
  bed_->leave(*this);
}

}}}  // namespace sdma::v0_3::detail
