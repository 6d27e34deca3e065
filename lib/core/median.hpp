// SPDX-License-Identifier: MIT
#pragma once
// The median of measurements, the value in the middle or the mean of the two in the middle; and quantiles, the value
// below which a part of all lies, linear between two of them. Each requires at least one value. Any thread may call
// them.
#include <algorithm>
#include <cmath>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

inline double quantile(std::vector<double> v, double part) {
  std::sort(v.begin(), v.end());
  const auto at = part * static_cast<double>(v.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  return std::lerp(v[low], v[std::min(low + 1, v.size() - 1)], at - static_cast<double>(low));
}

}}}  // namespace sdma::v0_3::detail
