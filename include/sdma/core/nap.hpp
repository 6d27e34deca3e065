// SPDX-License-Identifier: MIT
#pragma once
// Lets other threads have the processor.
//
//   yield();                                  threads that wait for this core run first, if there are any
//   nap(std::chrono::microseconds(10));       at least this long, unless a signal interrupts it: look again afterwards
//
// std::this_thread has both, but <thread> takes longer to compile than everything else that a wait needs; where POSIX
// is there, two C headers do. No state; any thread may call. No errors: both are hints.
#include "sdma/core/durations.hpp"

#if !defined(SDMA_STANDARD_ONLY) && __has_include(<sched.h>) && __has_include(<unistd.h>)
#include <sched.h>
#include <time.h>
#else
#include <thread>
#endif

namespace sdma::inline v0::detail {

#if !defined(SDMA_STANDARD_ONLY) && __has_include(<sched.h>) && __has_include(<unistd.h>)
inline void yield() noexcept { ::sched_yield(); }
inline void nap(std::chrono::nanoseconds t) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  const ::timespec for_so_long{.tv_sec = static_cast<std::time_t>(seconds.count()),
                               .tv_nsec = static_cast<long>((t - seconds).count())};
  ::nanosleep(&for_so_long, nullptr);
}
#else
inline void yield() noexcept { std::this_thread::yield(); }
inline void nap(std::chrono::nanoseconds t) noexcept { std::this_thread::sleep_for(t); }
#endif

}  // namespace sdma::inline v0::detail
