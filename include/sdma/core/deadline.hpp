#pragma once
// The moment at which a wait gives up. Everything in this library that waits takes one; none of them means "never".
//
//   auto d = Deadline::in(std::chrono::milliseconds(200));
//   while (!d.passed()) { ... }
//
// A plain value on the steady clock; a duration too long for the clock ends at the clock's last moment.
#include <chrono>

namespace sdma {
inline namespace v0 {

struct Deadline {
  using Clock = std::chrono::steady_clock;
  Clock::time_point at{};

  static Deadline in(std::chrono::nanoseconds d) noexcept {
    const auto now = Clock::now();
    return {d > Clock::time_point::max() - now ? Clock::time_point::max() : now + d};
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
