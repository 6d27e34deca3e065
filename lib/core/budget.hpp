// SPDX-License-Identifier: MIT
#pragma once
// How much an input may ask for. Internal.
//
//   Budget rounds{1 << 20};                                        // for a whole text, not for each of its loops
//   if (!rounds.take(n)) return fail(at, "the loops of this text have more than ... rounds");
//
// A few characters can ask for much: rounds of a loop, copies of a packet, repeated bytes, actions of a simulated
// host. Whatever loops over such a number takes it from a Budget first, before any of the work is done. A Budget that
// cannot pay gives nothing, so a limit never cuts an input short: the caller refuses the input, and names the line,
// the limit and a way out.
//
// One thread at a time. No allocation.
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail {

class Budget {
 public:
  explicit constexpr Budget(std::uint64_t limit) noexcept : limit_(limit), left_(limit) {}

  /// Takes `n`. If fewer are left, takes nothing and returns false.
  [[nodiscard]] constexpr bool take(std::uint64_t n = 1) noexcept { return n <= left_ ? left_ -= n, true : false; }
  constexpr std::uint64_t limit() const noexcept { return limit_; }
  constexpr std::uint64_t left() const noexcept { return left_; }
  /// Makes the whole limit available again: for another pass over the same input.
  constexpr void renew() noexcept { left_ = limit_; }

 private:
  std::uint64_t limit_, left_;
};

}}}  // namespace sdma::v0_3::detail
