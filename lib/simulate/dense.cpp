// SPDX-License-Identifier: MIT
#include "dense.hpp"

#include <cmath>
#include <tuple>
#include <utility>

namespace sdma::inline v0::detail {

std::vector<double> solve(Square a, std::vector<double> b) {
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

Eigen eigen(Square a) {
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

}  // namespace sdma::inline v0::detail
