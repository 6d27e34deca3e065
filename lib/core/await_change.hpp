// SPDX-License-Identifier: MIT
#pragma once
// A condition variable's wait that takes a Deadline.
//
//   while (queue.empty()) {
//     if (d.passed()) return Errc::timed_out;
//     await_change(came, lock, d);
//   }
//
// Returns after an hour at the latest, because a condition variable cannot represent the clock's last moment: so call
// it in a loop. Releases the lock while it waits; any thread; internal. No errors.
#include "sdma/core/deadline.hpp"

#include <condition_variable>
#include <mutex>

namespace sdma { inline namespace v0_3 { namespace detail {

inline void await_change(std::condition_variable& came, std::unique_lock<std::mutex>& lock, Deadline d) noexcept {
  came.wait_until(lock, d.within(std::chrono::hours(1)).at);
}

}}}  // namespace sdma::v0_3::detail
