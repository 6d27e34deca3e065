// SPDX-License-Identifier: MIT
#pragma once
// How much of the work of large packets one step may execute. A packet of a gigabyte does not fit in a step: the step
// executes a part of it and returns, and a later step continues.
//
//   Allowance left;                                  // that of one step
//   const Part part = left.take(copy, {done, all});  // never empty if [done, all) is not: every action makes progress
//   if (left.spent()) return;                        // the step ends
//
// The unit is a byte. Each row of a box costs kRow more, because a row needs a look-up of its own: a box of a million
// rows of one byte takes as long as a much larger copy. One thread; no errors.
#include "execute.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

class Allowance {
 public:
  static constexpr std::uint64_t kStep = 4 << 20;  ///< about a millisecond
  static constexpr std::uint64_t kRow = 64;
  static constexpr std::uint64_t kLeast =
      1024;  ///< a part of at most this size is never cut, so a step may execute a little more

  bool spent() const noexcept { return left_ == 0; }
  std::uint64_t used() const noexcept { return kStep - left_; }

  /// The first part of `rest` that this step executes.
  template <Divisible P> Part take(const P& p, Part rest) noexcept {
    const auto bytes = rest.end - rest.begin;
    if (bytes <= kLeast) [[likely]] {
      spend(bytes);
      return rest;
    }
    std::uint64_t row = kStep;
    footprint(p, [&](const Region& r) { row = std::clamp<std::uint64_t>(r.bytes, 1, row); });
    const auto n = std::min(bytes, std::max(left_ * row / (row + kRow), kLeast));
    spend(n + n / row * kRow);
    return {rest.begin, rest.begin + n};
  }

 private:
  void spend(std::uint64_t n) noexcept { left_ -= std::min(n, left_); }
  std::uint64_t left_ = kStep;
};

}}}  // namespace sdma::v0_3::detail
