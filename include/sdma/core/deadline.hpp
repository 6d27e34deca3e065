// SPDX-License-Identifier: MIT
#pragma once
// The moment at which a wait gives up. A call that waits takes one, or options with a limit, of which the call makes
// one, or it has a bound of its own; there is no way to say "forever".
//
//   auto d = Deadline::in(std::chrono::milliseconds(200));
//   while (!d.passed()) look_again();
//   while (!d.passed()) look_again_until(d.within(std::chrono::milliseconds(20)));   // in slices
//
// With a limit, because each of several waits needs a deadline: `run` (RunOptions::time_limit), `bind` of several ranks
// (BindOptions::exchange_limit), `measure` (MeasureOptions::round_limit), `in_ranks` (`patience`), `examine` and
// `snapshot_of` (`watch`). With a bound of its own, which its header names:
//
//   Device::open_shared                 10 s for the owner                                  device/memory.hpp
//   a device's destructor               1 s for a process that opens its memory             device/device.hpp
//   a queue's destructor                what its engine is executing; on CUDA, 10 s         queue/queue.hpp
//   on CUDA: clock, peek, allocate,     10 s for a reading, 60 s for a piece,               device/cuda.hpp
//   flush_host_writes                   if the GPU does not answer
//   run of several ranks                10 s more than the limit, where they meet           schedule/run.hpp
//   a Bound's destructor                2 s for what goes to other nodes                    schedule/bind.hpp
//   examine                             30 s more than `watch`                              doctor/attach.hpp
//
// A duration of zero or less gives a deadline that has already passed. A duration that is too long for the clock gives
// the last moment that the clock can represent. A Deadline is a plain value on the steady clock; any thread may use a
// copy. No errors.
//
// This header provides the durations and the steady clock of std::chrono, without its calendars, time zones and
// streams: in C++20, <chrono> costs a quarter of the compile time of a header that waits. The <mutex> of libstdc++
// includes a smaller header for these parts. Later versions may do this differently, so they get <chrono>.
#include "sdma/core/standard.hpp"

#include <concepts>
#include <cstdint>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE <= 14
#include <mutex>
#else
#include <chrono>
#endif
// <thread> takes longer to compile than everything else that a wait needs; where POSIX is there, two C headers do.
#if !defined(SDMA_STANDARD_ONLY) && __has_include(<sched.h>) && __has_include(<unistd.h>)
#include <sched.h>
#include <time.h>
#else
#include <thread>
#endif

namespace sdma { inline namespace v0_3 {

struct Deadline {
  using Clock = std::chrono::steady_clock;  ///< steady: changes of the wall clock do not move a deadline
  Clock::time_point at{};                   ///< the moment at which it passes

  /// `d` from now.
  template <std::integral Rep, class Period> static Deadline in(std::chrono::duration<Rep, Period> d) noexcept {
    const auto now = Clock::now();
    // Compared in floating point: hours::max() does not fit in nanoseconds, and the conversion would overflow.
    using Seconds = std::chrono::duration<long double>;
    if (Seconds(d) >= Seconds(Clock::time_point::max() - now)) return {Clock::time_point::max()};
    return {d <= d.zero() ? now : now + std::chrono::duration_cast<Clock::duration>(d)};
  }
  /// This deadline, or `d` from now if that is earlier: for a wait in slices, between which something else is examined.
  template <std::integral Rep, class Period> Deadline within(std::chrono::duration<Rep, Period> d) const noexcept {
    const auto slice = in(d);
    return slice.at < at ? slice : *this;
  }
  /// Is it `at` or later?
  [[nodiscard]] bool passed() const noexcept { return Clock::now() >= at; }
  /// The time that is left; zero once the deadline has passed.
  [[nodiscard]] std::chrono::nanoseconds left() const noexcept {
    const auto now = Clock::now();
    return at > now ? at - now : std::chrono::nanoseconds::zero();
  }
};

namespace detail {

// `yield`: threads that wait for this core run first, if there are any; `nap`: at least that long, unless a signal
// interrupts it. Both are hints.
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

}  // namespace detail
}}  // namespace sdma::v0_3
