// SPDX-License-Identifier: MIT
#include "fit_uncertainty.hpp"

#include "dense.hpp"
#include "fit_search.hpp"

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr int kBisections = 22;  // of an end of a range: to six digits
constexpr double kSame = 1e-9;   // parts that differ by less are equal

bool differ(const Objective::Point& a, const Objective::Point& b) {
  if (!std::isfinite(a.cost) || !std::isfinite(b.cost)) return true;
  for (std::size_t k = 0; k < a.parts.size(); ++k)
    if (std::abs(a.parts[k] - b.parts[k]) > kSame) return true;
  return false;
}

class Prober {
 public:
  Prober(Objective& f, const Objective::Point& best) : f_(f), best_(best) {}

  bool stopped() const noexcept { return stopped_; }
  /// The point with parameter i moved, or `best` itself once a limit was reached.
  Objective::Point moved(std::size_t i, double by) {
    auto x = best_.x;
    x[i] += by;
    auto p = f_.at(std::move(x));
    stopped_ = stopped_ || !p;
    return p ? std::move(*p) : best_;
  }
  /// How far parameter i can move to one side before any prediction changes.
  double reach(std::size_t i, double side) {
    const auto most = side > 0 ? f_.bounds(i).high - best_.x[i] : best_.x[i] - f_.bounds(i).low;
    double same = 0, differs = 0;
    for (auto by = kDifference; differs == 0 && same < most && !stopped_; by *= 2) {
      by = std::min(by, most);
      (differ(moved(i, side * by), best_) ? differs : same) = by;
    }
    for (int k = 0; k < kBisections && differs > 0 && !stopped_; ++k) {
      const auto middle = (same + differs) / 2;
      (differ(moved(i, side * middle), best_) ? differs : same) = middle;
    }
    return same;
  }

 private:
  Objective& f_;
  const Objective::Point& best_;
  bool stopped_ = false;
};

/// The state of each parameter, and the derivatives of those that the measurements determine.
std::optional<Columns> probe(Objective& f, const Objective::Point& best, std::vector<Certainty::Parameter>& out) {
  Prober prober{f, best};
  Columns columns(f.parameters(), std::vector<double>(best.parts.size()));
  for (std::size_t i = 0; i < f.parameters(); ++i) {
    const auto room_up = f.bounds(i).high - best.x[i], room_down = best.x[i] - f.bounds(i).low;
    const auto up = prober.moved(i, std::min(kDifference, room_up));
    const auto down = prober.moved(i, -std::min(kDifference, room_down));
    const bool changes_up = differ(up, best), changes_down = differ(down, best);
    auto& p = out[i];
    if (room_up < kSame || room_down < kSame) {
      p.state = changes_up || changes_down ? Fit::State::at_bound : Fit::State::undetermined;
      p.lower = room_down < kSame;
    } else if (!changes_up || !changes_down) {
      const auto high = prober.reach(i, 1), low = prober.reach(i, -1);
      const auto everything = high >= room_up - kSame && low >= room_down - kSame;
      p.state = everything ? Fit::State::undetermined : Fit::State::range;
      p.from = std::exp(best.x[i] - low);
      p.to = std::exp(best.x[i] + high);
      p.deviation = std::max(p.to - std::exp(best.x[i]), std::exp(best.x[i]) - p.from);
    }
    if (p.state == Fit::State::at_bound && !(room_up < kSame ? changes_down : changes_up)) p.state = Fit::State::range;
    const auto width = up.x[i] - down.x[i];
    if ((p.state == Fit::State::fitted || p.state == Fit::State::at_bound) && std::isfinite(up.cost + down.cost))
      for (std::size_t k = 0; k < best.errors.size(); ++k) columns[i][k] = (up.parts[k] - down.parts[k]) / width;
    if (prober.stopped()) return {};
  }
  return columns;
}

/// A parameter, how far it may be off before anything is measured, and what that does to the parts of the cost.
struct Unknown {
  Cost cost{};
  double deviation{};
  std::vector<double> effect{};
};
/// Adds the uncertain parameters that are not free, if a part depends on them. False if a limit was reached.
bool assumed(Objective& f, const Objective::Point& best, std::vector<Unknown>& out) {
  auto m = f.machine(best.x);
  const auto& free = f.options().free;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto cost = static_cast<Cost>(i);
    const auto value = m.parameters[i].value, deviation = m.parameters[i].uncertainty;
    if (deviation == 0 || std::any_of(free.begin(), free.end(), [&](auto& p) { return p.cost == cost; })) continue;
    const auto by = value > 0 ? std::min(deviation, kDifference * value) : deviation;
    const auto high = unit(cost) == "fraction" ? std::min(1.0, value + by) : value + by;
    const auto low = std::max(0.0, value - by);
    m.parameters[i].value = high;
    const auto up = f.at(best.x, m);
    m.parameters[i].value = low;
    const auto down = f.at(best.x, m);
    m.parameters[i].value = value;
    if (!up || !down) return false;
    if (!std::isfinite(up->cost + down->cost) || !differ(*up, *down)) continue;
    auto& added = out.emplace_back(Unknown{cost, deviation, {}});
    for (std::size_t k = 0; k < best.parts.size(); ++k)
      added.effect.push_back((up->parts[k] - down->parts[k]) / (high - low) * deviation);
  }
  return true;
}
/// What measurements leave of the uncertainty of all of them.
Covariance together(const std::vector<Unknown>& all, const std::vector<double>& variances) {
  constexpr double kLeastVariance = 1e-12;
  const auto n = all.size();
  Square known(n);
  for (std::size_t a = 0; a < n; ++a) {
    known(a, a) = 1;
    for (std::size_t b = 0; b < n; ++b)
      for (std::size_t k = 0; k < variances.size(); ++k)
        known(a, b) += all[a].effect[k] * all[b].effect[k] / std::max(variances[k], kLeastVariance);
  }
  Covariance out;
  for (std::size_t a = 0; a < n; ++a) {
    out.of.push_back(all[a].cost);
    std::vector<double> unit(n);
    unit[a] = 1;
    const auto row = solve(known, std::move(unit));
    for (std::size_t b = 0; b < n; ++b) out.values.push_back(row[b] * all[a].deviation * all[b].deviation);
  }
  // Rounding must not leave the halves different.
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b) out.values[b * n + a] = out.values[a * n + b];
  return out;
}

/// The variance of each part of the cost.
struct Variances {
  std::vector<double> each{};
  bool known{};
};
Variances variances(const Objective& f, const Objective::Point& best, std::size_t determined) {
  double squares = 0, counted = 0;
  const auto all = f.observations();
  for (const auto part : best.parts) squares += part * part;
  for (const auto& o : all) counted += o.weight > 0;
  const auto left = counted - static_cast<double>(determined);
  Variances out{.known = left > 0};
  const auto scatter = left > 0 ? squares / left : 0;
  out.each.assign(best.parts.size(), scatter);
  double mean = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& o = all[k];
    const auto own = o.weight * o.spread / (o.kind == Observation::Kind::share ? 100 : o.value);
    out.each[k] = std::max(own * own, scatter);
    out.known = out.known || o.spread > 0;
    if (o.weight > 0) mean += out.each[k] / counted;
  }
  // What a group shares is counted in units of an observation's error.
  std::fill(out.each.begin() + static_cast<std::ptrdiff_t>(all.size()), out.each.end(), mean);
  return out;
}

}  // namespace

std::optional<Certainty> uncertainty(Objective& f, const Objective::Point& best) {
  f.stage("uncertainty");
  Certainty out{.parameters = std::vector<Certainty::Parameter>(f.parameters())};
  const auto columns = probe(f, best, out.parameters);
  if (!columns) return {};
  const auto& free = f.options().free;
  std::vector<std::size_t> used;
  std::vector<double> scale;
  for (std::size_t i = 0; i < free.size(); ++i) {
    const auto s = out.parameters[i].state;
    if (s != Fit::State::fitted && s != Fit::State::at_bound) continue;
    double squares = 0;
    for (const auto slope : (*columns)[i]) squares += slope * slope;
    if (squares == 0) continue;
    used.push_back(i);
    scale.push_back(std::sqrt(squares));
  }
  const auto n = used.size();
  const auto variance = variances(f, best, n);
  out.known = variance.known;
  const auto slope = [&](std::size_t a, std::size_t k) { return (*columns)[used[a]][k] / scale[a]; };

  // The normal matrix with a diagonal of 1, and its inverse without the directions that are not determined at all.
  Square normal(n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b)
      for (std::size_t k = 0; k < best.parts.size(); ++k) normal(a, b) += slope(a, k) * slope(b, k);
  const auto e = eigen(normal);
  constexpr double kLeastValue = 1e-9;
  Square inverse(n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b)
      for (std::size_t d = 0; d < n; ++d)
        inverse(a, b) += e.vectors(a, d) * e.vectors(b, d) / std::max(e.values[d], kLeastValue);

  // covariance = sum over parts of variance * influence^2; influence = inverse * slope
  Square covariance(n);
  for (std::size_t k = 0; k < best.parts.size(); ++k) {
    std::vector<double> influence(n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) influence[a] += inverse(a, b) * slope(b, k);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) covariance(a, b) += variance.each[k] * influence[a] * influence[b];
  }
  std::vector<Unknown> unknown;
  for (const auto i : used) unknown.push_back({free[i].cost, std::exp(best.x[i]), (*columns)[i]});
  if (!assumed(f, best, unknown)) return {};
  out.covariance = together(unknown, variance.each);

  out.correlation.resize(free.size() * free.size());
  for (std::size_t a = 0; a < n; ++a) {
    auto& p = out.parameters[used[a]];
    const auto value = std::exp(best.x[used[a]]);
    const auto bounds = f.bounds(used[a]);
    const auto widest = std::max(std::exp(bounds.high) - value, value - std::exp(bounds.low));
    p.deviation = std::min(value * std::sqrt(covariance(a, a)) / scale[a], widest);
    for (std::size_t b = 0; b < n; ++b) {
      // Of the inverse, not of the covariance: whether two parameters
      // act alike does not depend on how large the errors are.
      const auto r = inverse(a, b) / std::sqrt(inverse(a, a) * inverse(b, b));
      out.correlation[used[a] * free.size() + used[b]] = r;
      if (a == b || std::abs(r) <= Fit::kAlike) continue;
      p.alike.push_back(free[used[b]].cost);
      if (a < b) out.alike.push_back({free[used[a]].cost, free[used[b]].cost, r});
    }
    // inverse(a, a) is the factor by which the variance grows because the others are free, too.
    constexpr double kInflated = 1 / (1 - Fit::kAlike * Fit::kAlike), kPart = 0.3;
    if (!p.alike.empty() || inverse(a, a) <= kInflated) continue;
    for (std::size_t b = 0; b < n; ++b)
      if (b != a && std::abs(out.correlation[used[a] * free.size() + used[b]]) > kPart && inverse(b, b) > kInflated)
        p.together.push_back(free[used[b]].cost);
  }
  return out;
}

}}}  // namespace sdma::v0_3::detail
