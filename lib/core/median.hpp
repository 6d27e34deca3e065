// SPDX-License-Identifier: MIT
#pragma once
// The median of measurements: the value in the middle, or the mean of the two in the middle. Requires at least one
// value. Any thread may call it.
#include <algorithm>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

}}}  // namespace sdma::v0_3::detail
