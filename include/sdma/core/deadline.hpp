#pragma once
// The moment at which a wait gives up. Everything in this library that waits takes one; none of them means "never".
//
//   auto d = Deadline::in(std::chrono::milliseconds(200));
//   while (!d.passed()) { ... }
//
// A plain value on the steady clock; a duration too long for the clock ends at the clock's last moment, and one of zero or
// less has passed already.
#include <chrono>
#include <concepts>

namespace sdma {
inline namespace v0 {

struct Deadline {
  using Clock = std::chrono::steady_clock;
  Clock::time_point at{};

  template <std::integral Rep, class Period> static Deadline in(std::chrono::duration<Rep, Period> d) noexcept {
    const auto now = Clock::now();
    // Compared in floating point: hours::max() has no place among nanoseconds, and the conversion would wrap.
    using Seconds = std::chrono::duration<long double>;
    if (Seconds(d) >= Seconds(Clock::time_point::max() - now)) return {Clock::time_point::max()};
    return {d <= d.zero() ? now : now + std::chrono::duration_cast<Clock::duration>(d)};
  }
  bool passed() const noexcept { return Clock::now() >= at; }
  /// What is left, zero when passed.
  std::chrono::nanoseconds left() const noexcept {
    const auto now = Clock::now();
    return at > now ? at - now : std::chrono::nanoseconds::zero();
  }
};

}  // namespace v0
}  // namespace sdma
