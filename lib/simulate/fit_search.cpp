// SPDX-License-Identifier: MIT
#include "fit_search.hpp"

#include "dense.hpp"

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr int kDescents = 40, kSweeps = 400;
constexpr double kFirstStep = 0.1, kLastStep = 0.001;
constexpr double kLeastGain = 1e-6;  // of a step, relative to the cost

/// Residuals whose squares add up to the cost, and their derivatives with respect to its parts.
struct Residual {
  double value, slope;
};
Residual residual(double part, double power) {
  const auto half = power / 2, size = std::abs(part);
  const auto value = std::copysign(std::pow(size, half), part);
  return {value, half * std::pow(std::max(size, 1e-12), half - 1)};
}

/// The derivatives at `p` by differences to one side; nothing if a limit was reached.
std::optional<Columns> derivatives(Objective& f, const Objective::Point& p) {
  Columns out;
  for (std::size_t i = 0; i < f.parameters(); ++i) {
    auto x = p.x;
    const auto step = x[i] + kDifference <= f.bounds(i).high ? kDifference : -kDifference;
    x[i] += step;
    const auto moved = f.at(std::move(x));
    if (!moved) return {};
    auto& column = out.emplace_back(p.parts.size());
    if (std::isfinite(moved->cost))
      for (std::size_t k = 0; k < column.size(); ++k) column[k] = (moved->parts[k] - p.parts[k]) / step;
  }
  return out;
}

/// A lower point than `best` along damped Gauss-Newton steps. Returns false if a limit was reached.
bool step_down(Objective& f, Objective::Point& best, const Columns& columns, double& damping) {
  const auto n = f.parameters();
  Square normal(n);
  std::vector<double> gradient(n);
  for (std::size_t k = 0; k < best.parts.size(); ++k) {
    const auto r = residual(best.parts[k], f.options().power);
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] += r.slope * columns[i][k] * r.value;
      for (std::size_t j = 0; j < n; ++j) normal(i, j) += r.slope * columns[i][k] * r.slope * columns[j][k];
    }
  }
  if (std::all_of(gradient.begin(), gradient.end(), [](double g) { return g == 0; })) return true;
  constexpr double kMostDamping = 1e6, kMore = 5, kLess = 0.3, kLongest = 1;
  for (; damping < kMostDamping; damping *= kMore) {
    auto damped = normal;
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, normal(i, i));
    for (std::size_t i = 0; i < n; ++i) damped(i, i) += damping * normal(i, i) + 1e-12 * largest + 1e-300;
    const auto step = solve(damped, gradient);
    auto x = best.x;
    for (std::size_t i = 0; i < n; ++i) x[i] -= std::clamp(step[i], -kLongest, kLongest);
    auto p = f.at(std::move(x));
    if (!p) return false;
    if (p->cost < best.cost) {
      best = std::move(*p);
      damping *= kLess;
      return true;
    }
  }
  return true;
}

}  // namespace

bool descend(Objective& f, Objective::Point& best) {
  f.stage("descent");
  double damping = 1e-3;
  for (int i = 0; i < kDescents; ++i) {
    const auto columns = derivatives(f, best);
    if (!columns) return false;
    const auto before = best.cost;
    if (!step_down(f, best, *columns, damping)) return false;
    if (best.cost >= before * (1 - kLeastGain)) return true;
  }
  return true;
}

bool search(Objective& f, Objective::Point& best) {
  f.stage("search");
  const auto n = f.parameters();
  std::vector<double> steps(n, kFirstStep);
  // Sizes act in steps, at powers of two.
  for (std::size_t i = 0; i < n; ++i)
    if (unit(f.options().free[i].cost) == "bytes") steps[i] = std::log(2.0);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const auto from = best;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::abs(steps[i]) < kLastStep) continue;
      bool better = false;
      for (int side = 0; side < 2 && !better; ++side, steps[i] = -steps[i]) {
        auto x = best.x;
        x[i] += steps[i];
        auto p = f.at(std::move(x));
        if (!p) return false;
        better = p->cost < best.cost * (1 - kLeastGain);
        if (better) best = std::move(*p), steps[i] = -steps[i];
      }
      if (!better) steps[i] /= 2;
    }
    if (std::all_of(steps.begin(), steps.end(), [](double s) { return std::abs(s) < kLastStep; })) return true;
    if (best.cost >= from.cost) continue;
    auto x = best.x;
    for (std::size_t i = 0; i < n; ++i) x[i] += best.x[i] - from.x[i];
    auto p = f.at(std::move(x));
    if (!p) return false;
    if (p->cost < best.cost) best = std::move(*p);
  }
  return true;
}

}}}  // namespace sdma::v0_3::detail
