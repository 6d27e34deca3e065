// SPDX-License-Identifier: MIT
#pragma once
// How many bytes per second a link carries in one direction, or that this is unknown.
//
//   Rate link = Rate::gb_per_s(64);              // of a link of MI300X; the same as Rate::gbit_per_s(512)
//   link.mb_per_s() == 64000                     // 10^6 bytes per second, as files write it
//   Rate{}.gb_per_s() == std::nullopt            // unknown: there is no number, so none can be used by mistake
//
// A rate is a whole number of 10^6 bytes per second, so that files and listings of the kernel keep it exactly. Rates of
// parameters of a machine (simulate/machine.hpp) are numbers of bytes per ns, which is GB/s.
//
// A plain value without shared state. No errors: a number that cannot be a rate makes an unknown Rate.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <optional>

namespace sdma { inline namespace v0_3 {

/// A rate in one direction, or that it is unknown.
class Rate {
 public:
  constexpr Rate() = default;  ///< unknown
  /// In 10^6 bytes per second. 0 is an unknown rate: topology files and the kernel write it so.
  static constexpr Rate mb_per_s(std::uint32_t n) noexcept { return Rate{n}; }
  /// In 10^9 bytes per second, rounded. Unknown if it is less than 0.001 or more than 4 million, or not a number.
  static constexpr Rate gb_per_s(double n) noexcept {
    return n >= 1e-3 && n <= 4e6 ? Rate{static_cast<std::uint32_t>(n * 1000 + 0.5)} : Rate{};
  }
  /// In 10^9 bits per second, as networks count. Unknown if it is 0 or more than 32 million.
  static constexpr Rate gbit_per_s(std::uint32_t n) noexcept { return n <= 32'000'000 ? Rate{n * 125} : Rate{}; }

  /// Does it have a number?
  constexpr bool known() const noexcept { return mb_ != 0; }
  /// In 10^6 bytes per second; nothing if it is unknown.
  constexpr std::optional<std::uint32_t> mb_per_s() const noexcept {
    return known() ? std::optional(mb_) : std::nullopt;
  }
  /// In 10^9 bytes per second, which is bytes per ns; nothing if it is unknown.
  constexpr std::optional<double> gb_per_s() const noexcept {
    return known() ? std::optional(mb_ / 1e3) : std::nullopt;
  }
  /// Two unknown rates are equal.
  friend constexpr bool operator==(Rate, Rate) = default;

 private:
  constexpr explicit Rate(std::uint32_t mb) noexcept : mb_(mb) {}
  std::uint32_t mb_ = 0;
};

}}  // namespace sdma::v0_3
