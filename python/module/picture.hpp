// SPDX-License-Identifier: MIT
#pragma once
// The size of a picture, as Python gives it.
#include <pybind11/pybind11.h>

#include <utility>

namespace sdma::python {

/// The width and the height. Raises an error for what no picture can have.
inline std::pair<double, double> pixels(const std::pair<double, double>& size) {
  constexpr double kLeast = 200, kMost = 10'000;
  const auto good = [](double side) { return side >= kLeast && side <= kMost; };
  if (good(size.first) && good(size.second)) return size;
  throw pybind11::value_error("size is (width, height), each from 200 to 10000 pixels");
}

}  // namespace sdma::python
