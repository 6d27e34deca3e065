// SPDX-License-Identifier: MIT
#pragma once
// A place where one or more threads sleep until another thread calls `wake`. It is a futex that also records whether
// any thread sleeps, so `wake` makes no system call if no thread sleeps, nor if the woken thread has not run yet.
//
//   sleeper                                   waker
//   auto t = place.ticket();                  store what the sleeper waits for
//   check: nothing to do?                     place.wake()
//   place.sleep(t, deadline)
//
//   word   [ number of wake calls | a thread went to sleep since the last one ]
//
// No wake-up is lost: a `wake` between `ticket` and `sleep` changes the ticket, and sleep returns at once. A thread
// that is woken sees everything that came before the `wake`. Any thread may call these functions. No errors; early
// returns are normal.
#include "sdma/core/deadline.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace sdma { inline namespace v0_3 { namespace detail {

template <int kFlag> class BasicParking {
 public:
  std::uint32_t ticket() const noexcept { return word_.load(std::memory_order_seq_cst) & ~kSleeper; }

  /// Sleeps until a `wake` that comes after `ticket` was taken, or until the deadline.
  void sleep(std::uint32_t ticket, Deadline d) noexcept {
    auto now = ticket;
    if (word_.compare_exchange_strong(now, ticket | kSleeper, std::memory_order_seq_cst) || now == (ticket | kSleeper))
      wait(ticket | kSleeper, d);
  }
  /// Sleeps until a `wake` or the deadline, unless `changed()` is already true. For wakers that call `wake` only if a
  /// thread sleeps.
  template <class F> void sleep_unless(Deadline d, F changed) noexcept {
    const auto now = word_.fetch_or(kSleeper, std::memory_order_seq_cst) | kSleeper;
    if (!changed()) wait(now, d);
  }

  void wake() noexcept {
    auto now = word_.load(std::memory_order_seq_cst);
    while (!word_.compare_exchange_weak(now, (now & ~kSleeper) + kWake, std::memory_order_seq_cst)) {}
    if ((now & kSleeper) != 0) syscall(SYS_futex, address(), FUTEX_WAKE | kFlag, INT_MAX, nullptr, nullptr, 0);
  }

  /// Did a thread go to sleep since the last `wake`? It may have woken up by itself since.
  bool has_sleepers() const noexcept { return (word_.load(std::memory_order_seq_cst) & kSleeper) != 0; }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  void* address() noexcept { return &word_; }
  static constexpr std::uint32_t kSleeper = 1, kWake = 2;
  /// Sleeps while the word is `now`, at most until the deadline.
  void wait(std::uint32_t now, Deadline d) noexcept {
    const auto left = d.left().count();
    if (left <= 0) return;
    const timespec t{.tv_sec = static_cast<std::time_t>(left / 1'000'000'000),
                     .tv_nsec = static_cast<long>(left % 1'000'000'000)};
    syscall(SYS_futex, address(), FUTEX_WAIT | kFlag, now, &t, nullptr, 0);
    (void)word_.load(std::memory_order_seq_cst);
  }

  std::atomic<std::uint32_t> word_{0};
};

/// One in memory of this process; BasicParking<0> may lie in memory that several processes map.
using Parking = BasicParking<FUTEX_PRIVATE_FLAG>;

}}}  // namespace sdma::v0_3::detail
