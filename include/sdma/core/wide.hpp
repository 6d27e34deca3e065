// SPDX-License-Identifier: MIT
#pragma once
// A signed integer of 128 bits, for sums and products of addresses. It is the compiler's own, if it has one
// (core/compiler.hpp); otherwise, as for a processor of 32 bits, a class that computes alike.
//
//   const detail::Wide end = detail::Wide{address} + detail::Wide{rows} * detail::Wide{pitch};
//
// Results that do not fit wrap. Division truncates towards zero; a division by 0 is undefined. Constant expressions:
// any thread may use them. No errors.
#include "sdma/core/compiler.hpp"

#include <compare>
#include <concepts>
#include <cstdint>

namespace sdma::inline v0::detail {

/// Two words that compute as one integer.
class TwoWords {
 public:
  constexpr TwoWords() = default;
  template <std::integral T>
  constexpr TwoWords(T v) noexcept : low_(static_cast<std::uint64_t>(v)), high_(v < T{} ? ~std::uint64_t{} : 0) {}
  template <std::integral T> constexpr explicit operator T() const noexcept { return static_cast<T>(low_); }

  constexpr TwoWords operator-() const noexcept { return TwoWords{} - *this; }
  constexpr TwoWords& operator++() noexcept { return *this = *this + TwoWords{1}; }
  constexpr TwoWords& operator+=(TwoWords b) noexcept { return *this = *this + b; }
  constexpr TwoWords& operator-=(TwoWords b) noexcept { return *this = *this - b; }
  friend constexpr TwoWords operator+(TwoWords a, TwoWords b) noexcept {
    TwoWords sum;
    sum.low_ = a.low_ + b.low_;
    sum.high_ = a.high_ + b.high_ + (sum.low_ < a.low_ ? 1 : 0);
    return sum;
  }
  friend constexpr TwoWords operator-(TwoWords a, TwoWords b) noexcept {
    TwoWords rest;
    rest.low_ = a.low_ - b.low_;
    rest.high_ = a.high_ - b.high_ - (a.low_ < b.low_ ? 1 : 0);
    return rest;
  }
  friend constexpr TwoWords operator*(TwoWords a, TwoWords b) noexcept {
    constexpr auto kHalf = std::uint64_t{0xffffffff};
    const auto a0 = a.low_ & kHalf, a1 = a.low_ >> 32, b0 = b.low_ & kHalf, b1 = b.low_ >> 32;
    const auto middle = (a0 * b0 >> 32) + (a1 * b0 & kHalf) + (a0 * b1 & kHalf);
    TwoWords product;
    product.low_ = a.low_ * b.low_;
    product.high_ = a1 * b1 + (a1 * b0 >> 32) + (a0 * b1 >> 32) + (middle >> 32) + a.high_ * b.low_ + a.low_ * b.high_;
    return product;
  }
  friend constexpr TwoWords operator/(TwoWords a, TwoWords b) noexcept {
    TwoWords rest;
    const auto quotient = divided(a.magnitude(), b.magnitude(), rest);
    return a.negative() != b.negative() ? -quotient : quotient;
  }
  friend constexpr TwoWords operator%(TwoWords a, TwoWords b) noexcept {
    TwoWords rest;
    divided(a.magnitude(), b.magnitude(), rest);
    return a.negative() ? -rest : rest;
  }
  /// By 0 to 127 bits.
  friend constexpr TwoWords operator<<(TwoWords a, std::integral auto bits) noexcept {
    TwoWords moved;
    if (bits >= 64) return moved.high_ = a.low_ << (bits - 64), moved;
    moved.low_ = a.low_ << bits;
    moved.high_ = bits == 0 ? a.high_ : a.high_ << bits | a.low_ >> (64 - bits);
    return moved;
  }
  friend constexpr TwoWords operator>>(TwoWords a, std::integral auto bits) noexcept {
    TwoWords moved{a.negative() ? -1 : 0};
    const auto sign = moved.high_;
    if (bits >= 64) {
      moved.low_ = bits == 64 ? a.high_ : a.high_ >> (bits - 64) | sign << (128 - bits);
      return moved;
    }
    moved.low_ = bits == 0 ? a.low_ : a.low_ >> bits | a.high_ << (64 - bits);
    moved.high_ = bits == 0 ? a.high_ : a.high_ >> bits | sign << (64 - bits);
    return moved;
  }
  friend constexpr bool operator==(TwoWords, TwoWords) = default;
  friend constexpr std::strong_ordering operator<=>(TwoWords a, TwoWords b) noexcept {
    if (a.high_ != b.high_) return static_cast<std::int64_t>(a.high_) <=> static_cast<std::int64_t>(b.high_);
    return a.low_ <=> b.low_;
  }

 private:
  constexpr bool negative() const noexcept { return (high_ >> 63) != 0; }
  constexpr TwoWords magnitude() const noexcept { return negative() ? -*this : *this; }
  constexpr bool less(TwoWords o) const noexcept { return high_ != o.high_ ? high_ < o.high_ : low_ < o.low_; }
  constexpr TwoWords doubled(std::uint64_t bit) const noexcept {
    TwoWords d;
    d.low_ = low_ << 1 | bit;
    d.high_ = high_ << 1 | low_ >> 63;
    return d;
  }
  /// Divides two magnitudes, bit by bit.
  static constexpr TwoWords divided(TwoWords a, TwoWords b, TwoWords& rest) noexcept {
    TwoWords quotient;
    for (unsigned bit = 128; bit-- > 0;) {
      rest = rest.doubled((bit < 64 ? a.low_ >> bit : a.high_ >> (bit - 64)) & 1);
      const bool fits = !rest.less(b);
      if (fits) rest = rest - b;
      quotient = quotient.doubled(fits ? 1 : 0);
    }
    return quotient;
  }

  std::uint64_t low_{}, high_{};  // two's complement
};

#ifdef SDMA_INT128
SDMA_INT128(Wide);
#else
using Wide = TwoWords;
#endif

}  // namespace sdma::inline v0::detail
