// SPDX-License-Identifier: MIT
#pragma once
// An axis of a plot: the pixel of a value, and the values that get a grid line. Internal.
//
//   const Axis y(Axis::Scale::linear, 0, 4.7, bottom, top);
//   for (const auto v : y.ticks()) svg.line(left, y.at(v), right, y.at(v), Svg::kGrid);       // 0, 0.5, 1, .. 4.5
#include <algorithm>
#include <cmath>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class Axis {
 public:
  enum class Scale { linear, log };
  /// Maps the values from `least` to `most` to the pixels from `from` to `to`.
  /// Both values are finite, and positive for `log`. An empty range is widened.
  Axis(Scale scale, double least, double most, double from, double to)
      : log_(scale == Scale::log), least_(position(least)), most_(position(most)), from_(from), to_(to) {
    if (most_ - least_ >= 1e-9) return;
    if (log_) least_ -= 0.5;
    most_ = least_ + (log_ ? 1 : std::max(1.0, std::abs(least_)));
  }

  double at(double value) const { return from_ + (position(value) - least_) / (most_ - least_) * (to_ - from_); }

  /// Linear: multiples of 1, 2 or 5 times a power of ten; log: powers of two. At most eleven.
  std::vector<double> ticks() const {
    const auto least = (most_ - least_) / 10, power = std::pow(10, std::floor(std::log10(least)));
    auto step = log_ ? std::max(1.0, std::ceil(least)) : power;
    if (!log_ && step < least) step *= 2 * power >= least ? 2 : 5 * power >= least ? 5 : 10;
    std::vector<double> all;
    for (auto i = std::ceil(least_ / step - 1e-6); i <= most_ / step + 1e-6 && all.size() <= 10; ++i)
      all.push_back(log_ ? std::exp2(i * step) : i * step + 0.0);  // no -0
    return all;
  }

 private:
  double position(double value) const { return log_ ? std::log2(value) : value; }

  bool log_;
  double least_, most_;  // positions
  double from_, to_;
};

}}}  // namespace sdma::v0_3::detail
