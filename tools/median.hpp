// SPDX-License-Identifier: MIT
#pragma once
// The median of measurements, for tools. Requires at least one value. Any thread may call it.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace sdma::tool {

inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

}  // namespace sdma::tool
