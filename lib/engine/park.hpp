#pragma once
// A place where one or more threads sleep until a knock wakes them. It is a futex that also records whether any thread
// sleeps, so a knock costs no system call if no thread sleeps, nor if the woken thread has not run yet.
//
//   sleeper                                   waker
//   auto t = place.ticket();                  store what the sleeper waits for
//   check: nothing to do?                     place.knock()
//   place.sleep(t, deadline)
//
//   word   [ number of knocks | a thread went to sleep since the last knock ]
//
// No wake-up is lost: a knock between `ticket` and `sleep` changes the ticket, and sleep returns at once. A thread that
// a knock wakes sees everything that came before the knock. Any thread. No errors; early returns are normal.
#include "sdma/core/deadline.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace sdma {
inline namespace v0 {
namespace detail {

class Parking {
 public:
  std::uint32_t ticket() const noexcept { return word_.load(std::memory_order_seq_cst) & ~kAsleep; }

  /// Sleeps until a knock that comes after `ticket` was taken, or until the deadline.
  void sleep(std::uint32_t ticket, Deadline d) noexcept {
    auto now = ticket;
    if (word_.compare_exchange_strong(now, ticket | kAsleep, std::memory_order_seq_cst) || now == (ticket | kAsleep))
      wait(ticket | kAsleep, d);
  }
  /// Sleeps until a knock or the deadline, unless `changed()` is already true. For wakers that knock only if a thread
  /// sleeps.
  template <class F> void sleep_unless(Deadline d, F changed) noexcept {
    const auto now = word_.fetch_or(kAsleep, std::memory_order_seq_cst) | kAsleep;
    if (!changed()) wait(now, d);
  }

  void knock() noexcept {
    auto now = word_.load(std::memory_order_seq_cst);
    while (!word_.compare_exchange_weak(now, (now & ~kAsleep) + kKnock, std::memory_order_seq_cst)) {}
    if ((now & kAsleep) != 0) syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Did a thread go to sleep since the last knock? It may have woken up by itself since.
  bool somebody_sleeps() const noexcept { return (word_.load(std::memory_order_seq_cst) & kAsleep) != 0; }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  void* address() noexcept { return &word_; }
  static constexpr std::uint32_t kAsleep = 1, kKnock = 2;
  /// Sleeps while the word is `now`, at most until the deadline.
  void wait(std::uint32_t now, Deadline d) noexcept {
    const auto left = d.left().count();
    if (left <= 0) return;
    const timespec t{.tv_sec = static_cast<std::time_t>(left / 1'000'000'000), .tv_nsec = left % 1'000'000'000};
    syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, now, &t, nullptr, 0);
    (void)word_.load(std::memory_order_seq_cst);
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
