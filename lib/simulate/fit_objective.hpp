// SPDX-License-Identifier: MIT
#pragma once
// How far a machine's predictions are from observations, with a limit on simulations and on time. Internal to fit.
//
//   Objective f{observations, initial, options};
//   auto p = f.at(x);                    // x: the logarithms of the free parameters, moved into their bounds
//   if (!p) return f.end();              // a limit was reached, or the caller stopped the fit
//   if (p->cost < best.cost) best = std::move(*p);
//
// Each distinct schedule is simulated once per point. If a schedule cannot be simulated at a point, its cost is
// infinite. Thread-safety: none. Errors: `complaints` has those of the observations at the initial machine.
#include "moved.hpp"
#include "sdma/simulate/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The bounds of a parameter: its own, or the default for its initial value.
inline FreeParameter bounded(const FreeParameter& p, double initial) {
  constexpr double kWide = 100, kLeastPart = 1e-4, kLargest = 1e12, kFromNothing = 1e4;
  auto out = p;
  if (p.low == 0 && p.high == 0) {
    out.low = initial / kWide;
    out.high = initial > 0 ? initial * kWide : kFromNothing;
    if (unit(p.cost) == "fraction") out.high = 1;
  }
  out.high = std::min(out.high, kLargest);
  out.low = std::max(out.low, out.high * kLeastPart);
  return out;
}

class Objective {
 public:
  struct Point {
    std::vector<double> x{};            ///< logarithms
    std::vector<double> predictions{};  ///< in the observations' units
    std::vector<double> errors{};       ///< unweighted
    std::vector<double> shared{};       ///< the part of each error that its group shares
    /// What the cost is the sum of, each to the power: the weighted error of each observation less what its group
    /// shares, and then what each group shares, relative to FitOptions::common.
    std::vector<double> parts{};
    double cost{}, mean{}, worst{};
    std::size_t worst_at{};
  };
  struct Bounds {
    double low{}, high{};  ///< logarithms
  };

  Objective(std::span<const Observation> o, const MachineDescription& initial, const FitOptions& options)
      : observations_(o), initial_(initial), options_(options) {
    for (const auto& each : o) {
      uses_.push_back({.schedule = intern(each.schedule.get())});
      uses_.back().baseline =
          each.kind == Observation::Kind::ratio ? intern(each.baseline.get()) : uses_.back().schedule;
      ids_.resize(schedules_.size(), each.id);
    }
    bases_.resize(schedules_.size());
    std::map<std::string_view, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < o.size() && options.common > 0; ++i)
      if (!o[i].group.empty() && o[i].weight > 0) groups[o[i].group].push_back(i);
    // The error of one observation alone is its own.
    for (auto& [name, members] : groups)
      if (members.size() > 1) groups_.push_back(std::move(members));
    for (const auto& p : options.free) {
      const auto b = bounded(p, initial[p.cost]);
      bounds_.push_back({std::log(b.low), std::log(b.high)});
    }
  }

  std::optional<Point> at(std::vector<double> x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], bounds_[i].low, bounds_[i].high);
    const auto m = machine(x);
    return at(std::move(x), m);
  }
  /// With a machine that differs from that of `x` in parameters that are not free.
  std::optional<Point> at(std::vector<double> x, const MachineDescription& m) {
    if (!may_continue()) return {};
    Point p{.x = std::move(x)};
    std::vector<Timed> times;
    for (std::size_t i = 0; i < schedules_.size(); ++i) {
      const auto t = time(i, m);
      if (!t) return p.cost = std::numeric_limits<double>::infinity(), p;
      times.push_back({t->ns, t->phase_ns});
    }
    judge(p, times);
    if (!any_ || p.cost < best_) best_ = p.cost, best_mean_ = p.mean, best_worst_ = p.worst;
    any_ = true;
    return p;
  }
  /// The point of the initial machine, and what is wrong with the observations there.
  Result<Point, std::vector<Diagnostic>> initial() {
    Point p;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      const auto v = initial_[options_.free[i].cost];
      p.x.push_back(std::clamp(v > 0 ? std::log(v) : bounds_[i].low, bounds_[i].low, bounds_[i].high));
    }
    const auto m = machine(p.x);
    std::vector<Timed> times;
    std::vector<Diagnostic> bad;
    for (std::size_t i = 0; i < schedules_.size(); ++i) {
      const auto t = time(i, m);
      if (t) {
        times.push_back({t->ns, t->phase_ns});
        continue;
      }
      for (auto d : t.error()) {
        d.where = ids_[i] + (d.where.empty() ? "" : ": " + d.where);
        bad.push_back(std::move(d));
      }
    }
    if (!bad.empty()) return bad;
    judge(p, times);
    best_ = p.cost, best_mean_ = p.mean, best_worst_ = p.worst;
    any_ = true;
    return p;
  }
  MachineDescription machine(std::span<const double> x) const {
    auto m = initial_;
    for (std::size_t i = 0; i < x.size(); ++i) m.parameter(options_.free[i].cost).value = std::exp(x[i]);
    return m;
  }

  std::size_t parameters() const noexcept { return bounds_.size(); }
  const Bounds& bounds(std::size_t i) const noexcept { return bounds_[i]; }
  std::span<const Observation> observations() const noexcept { return observations_; }
  const FitOptions& options() const noexcept { return options_; }
  std::uint64_t simulations() const noexcept { return simulations_; }
  Fit::End end() const noexcept { return end_; }
  void stage(std::string_view s) noexcept { stage_ = s; }

 private:
  struct Use {
    std::size_t schedule{}, baseline{};
  };
  struct Timed {
    double ns{};
    std::array<double, kPhases> phase_ns{};
  };

  std::size_t intern(const Schedule* s) {
    const auto at = std::find(schedules_.begin(), schedules_.end(), s);
    if (at != schedules_.end()) return static_cast<std::size_t>(at - schedules_.begin());
    schedules_.push_back(s);
    return schedules_.size() - 1;
  }
  /// The first time of a schedule is for all the others to repeat.
  Result<Simulation, std::vector<Diagnostic>> time(std::size_t schedule, const MachineDescription& m) {
    ++simulations_;
    auto& base = bases_[schedule];
    if (!base) {
      auto made = Base::of(*schedules_[schedule], initial_, {});
      if (!made) return std::move(made.error());
      base = *std::move(made);
    }
    return base->on(m);
  }
  bool may_continue() {
    if (simulations_ + schedules_.size() > options_.max_simulations) return end_ = Fit::End::simulations, false;
    if (options_.deadline.passed()) return end_ = Fit::End::deadline, false;
    if (any_ && options_.progress &&
        !options_.progress({stage_, simulations_, options_.max_simulations, best_mean_, best_worst_}))
      return end_ = Fit::End::stopped, false;
    return true;
  }
  double predicted(std::size_t i, std::span<const Timed> times) const {
    const auto& own = times[uses_[i].schedule];
    switch (observations_[i].kind) {
      case Observation::Kind::time: return own.ns;
      case Observation::Kind::ratio: return own.ns > 0 ? times[uses_[i].baseline].ns / own.ns : 0;
      case Observation::Kind::share: break;
    }
    return own.ns > 0 ? 100 * own.phase_ns[static_cast<std::size_t>(observations_[i].phase)] / own.ns : 0;
  }
  void judge(Point& p, std::span<const Timed> times) const {
    double counted = 0;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      const auto& o = observations_[i];
      const auto value = predicted(i, times);
      const auto e = o.kind == Observation::Kind::share ? (value - o.value) / 100 : value / o.value - 1;
      p.predictions.push_back(value);
      p.errors.push_back(e);
      if (o.weight == 0) continue;
      ++counted;
      p.mean += std::abs(e);
      if (std::abs(e) <= p.worst) continue;
      p.worst = std::abs(e);
      p.worst_at = i;
    }
    if (counted > 0) p.mean /= counted;
    p.shared.resize(p.errors.size());
    p.parts.resize(p.errors.size());
    for (const auto& g : groups_) {
      const auto r = shared(g, p.errors);
      for (const auto i : g) p.shared[i] = r;
      p.parts.push_back(r / options_.common);
    }
    for (std::size_t i = 0; i < p.errors.size(); ++i)
      p.parts[i] = observations_[i].weight * (p.errors[i] - p.shared[i]);
    for (const auto part : p.parts) p.cost += std::pow(std::abs(part), options_.power);
  }
  /// The error that costs least if these observations share it. The cost is convex in it, so its slope has one zero.
  double shared(const std::vector<std::size_t>& group, const std::vector<double>& errors) const {
    constexpr int kHalvings = 60;
    const auto p = options_.power;
    if (p == 2) {
      double sum = 0, weights = 1 / (options_.common * options_.common);
      for (const auto i : group) {
        const auto w = observations_[i].weight * observations_[i].weight;
        sum += w * errors[i];
        weights += w;
      }
      return sum / weights;
    }
    const auto slope = [&](double r) {
      const auto term = [&](double x, double scale) { return std::copysign(std::pow(std::abs(x), p - 1), x) * scale; };
      auto sum = term(r / options_.common, 1 / options_.common);
      for (const auto i : group) {
        const auto w = observations_[i].weight;
        sum -= term(w * (errors[i] - r), w);
      }
      return sum;
    };
    double low = 0, high = 0;
    for (const auto i : group) low = std::min(low, errors[i]), high = std::max(high, errors[i]);
    for (int k = 0; k < kHalvings; ++k) {
      const auto middle = (low + high) / 2;
      (slope(middle) < 0 ? low : high) = middle;
    }
    return (low + high) / 2;
  }

  std::span<const Observation> observations_;
  const MachineDescription& initial_;
  const FitOptions& options_;
  std::vector<const Schedule*> schedules_{};
  std::vector<std::optional<Base>> bases_{};
  std::vector<std::string> ids_{};  // of the first observation of each schedule
  std::vector<Use> uses_{};
  std::vector<std::vector<std::size_t>> groups_{};  // observations that share an error
  std::vector<Bounds> bounds_{};
  std::uint64_t simulations_ = 0;
  Fit::End end_ = Fit::End::converged;
  std::string_view stage_ = "descent";
  double best_ = 0, best_mean_ = 0, best_worst_ = 0;
  bool any_ = false;
};

/// What is wrong with observations that no machine could repair.
inline std::vector<Diagnostic> problems(std::span<const Observation> all) {
  std::vector<Diagnostic> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& o = all[i];
    const auto complain = [&](std::string message, std::string hint) {
      out.push_back({.where = o.id.empty() ? "observation " + std::to_string(i) : o.id,
                     .message = std::move(message),
                     .hint = std::move(hint)});
    };
    if (!o.schedule) complain("this observation has no schedule", "give it the schedule that was measured");
    if (o.kind == Observation::Kind::ratio && !o.baseline)
      complain("this ratio has no baseline", "give it the schedule whose time is divided by its own");
    const auto share = o.kind == Observation::Kind::share;
    if (!std::isfinite(o.value) || o.value < 0 || (!share && o.value == 0) || (share && o.value > 100))
      complain("its value is not possible",
               share ? "a share is a percentage from 0 to 100" : "a time in ns, or a ratio, is above 0");
    if (!std::isfinite(o.spread) || o.spread < 0) complain("its spread is negative", "0 means that it is not known");
    if (!std::isfinite(o.weight) || o.weight < 0) complain("its weight is negative", "1 is the default");
  }
  return out;
}

}}}  // namespace sdma::v0_3::detail
