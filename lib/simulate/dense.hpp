// SPDX-License-Identifier: MIT
#pragma once
// Small symmetric matrices. Internal to fit.
//
//   Square a(2); a(0, 0) = 4; ...
//   auto x = solve(a, b);                 // a x = b; `a` is positive definite
//   auto e = eigen(a);                    // values, and vectors as columns
//
// Plain values; no errors: a matrix that is not positive definite gives infinities.
#include <cstddef>
#include <vector>

namespace sdma::inline v0::detail {

class Square {
 public:
  explicit Square(std::size_t n) : n_(n), cells_(n * n) {}
  double& operator()(std::size_t row, std::size_t column) noexcept { return cells_[row * n_ + column]; }
  double operator()(std::size_t row, std::size_t column) const noexcept { return cells_[row * n_ + column]; }
  std::size_t size() const noexcept { return n_; }

 private:
  std::size_t n_;
  std::vector<double> cells_;
};

/// By Cholesky's decomposition.
std::vector<double> solve(Square a, std::vector<double> b);

struct Eigen {
  std::vector<double> values{};
  Square vectors;
};
/// By Jacobi's rotations.
Eigen eigen(Square a);

}  // namespace sdma::inline v0::detail
