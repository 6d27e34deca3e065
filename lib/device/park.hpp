#pragma once
// A place where one thread, or several, sleep until somebody knocks: a futex, and a count so that knocking at an empty place
// costs no system call.
//
//   sleeper                                   waker
//   auto t = place.ticket();                  store what is to be seen
//   look: nothing to do?                      place.knock()
//   place.sleep(t, deadline)
//
// Nothing is lost: a knock between `ticket` and `sleep` changes the ticket, and sleep returns at once. Everything before a
// knock is seen by who returns from a sleep because of it. Any thread. No errors; early returns are normal.
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
  std::uint32_t ticket() const noexcept { return word_.load(std::memory_order_seq_cst); }

  /// Until a knock after `ticket` was taken, or the deadline.
  void sleep(std::uint32_t ticket, Deadline d) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wait(ticket, d);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  /// For one whose waker knocks only where somebody sleeps: until a knock or the deadline, unless `changed()` holds already.
  template <class F> void sleep_unless(Deadline d, F changed) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const auto t = ticket();
    if (!changed()) wait(t, d);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  void knock() noexcept {
    word_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  bool somebody_sleeps() const noexcept { return sleepers_.load(std::memory_order_seq_cst) != 0; }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  void* address() noexcept { return &word_; }
  void wait(std::uint32_t ticket, Deadline d) noexcept {
    const auto left = d.left().count();
    if (left <= 0) return;
    const timespec t{.tv_sec = static_cast<std::time_t>(left / 1'000'000'000), .tv_nsec = left % 1'000'000'000};
    syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, ticket, &t, nullptr, 0);
    (void)word_.load(std::memory_order_seq_cst);
  }

  std::atomic<std::uint32_t> word_{0}, sleepers_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
