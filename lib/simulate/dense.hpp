// SPDX-License-Identifier: MIT
#pragma once
// Small symmetric matrices. Internal to fit.
//
//   Square a(2); a(0, 0) = 4; ...
//   auto x = solve(a, b);                 // a x = b; `a` is positive definite
//   auto e = eigen(a);                    // values, and vectors as columns
//
// Plain values; no errors: a matrix that is not positive definite gives infinities.
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

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
inline std::vector<double> solve(Square a, std::vector<double> b) {
  const auto n = a.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
    a(j, j) = std::sqrt(a(j, j));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
      a(i, j) /= a(j, j);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a(i, k) * b[k];
    b[i] /= a(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a(k, i) * b[k];
    b[i] /= a(i, i);
  }
  return b;
}

struct Eigen {
  std::vector<double> values{};
  Square vectors;
};
/// By Jacobi's rotations.
inline Eigen eigen(Square a) {
  const auto n = a.size();
  Square v(n);
  for (std::size_t i = 0; i < n; ++i) v(i, i) = 1;
  const auto rotate = [n](Square& m, std::size_t p, std::size_t q, double c, double s, bool rows) {
    for (std::size_t k = 0; k < n; ++k) {
      auto& x = rows ? m(p, k) : m(k, p);
      auto& y = rows ? m(q, k) : m(k, q);
      std::tie(x, y) = std::pair{c * x - s * y, s * x + c * y};
    }
  };
  constexpr int kSweeps = 60;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool rotated = false;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) <= 1e-15 * std::sqrt(std::abs(a(p, p) * a(q, q)))) continue;
        rotated = true;
        const auto theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const auto t = std::copysign(1 / (std::abs(theta) + std::hypot(theta, 1)), theta);
        const auto c = 1 / std::hypot(t, 1), s = t * c;
        rotate(a, p, q, c, s, false);
        rotate(a, p, q, c, s, true);
        rotate(v, p, q, c, s, false);
      }
    if (!rotated) break;
  }
  Eigen out{.vectors = std::move(v)};
  for (std::size_t i = 0; i < n; ++i) out.values.push_back(a(i, i));
  return out;
}

}}}  // namespace sdma::v0_3::detail
