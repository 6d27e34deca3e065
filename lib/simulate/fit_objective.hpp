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
#include "sdma/simulate/fit.hpp"

namespace sdma::inline v0::detail {

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

  Objective(std::span<const Observation>, const MachineDescription& initial, const FitOptions&);

  std::optional<Point> at(std::vector<double> x);
  /// The point of the initial machine, and what is wrong with the observations there.
  Result<Point, std::vector<Diagnostic>> initial();
  MachineDescription machine(std::span<const double> x) const;

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

  std::size_t intern(const Schedule*);
  bool may_continue();
  double predicted(std::size_t observation, std::span<const Timed>) const;
  void judge(Point&, std::span<const Timed>) const;
  double shared(const std::vector<std::size_t>& group, const std::vector<double>& errors) const;

  std::span<const Observation> observations_;
  const MachineDescription& initial_;
  const FitOptions& options_;
  std::vector<const Schedule*> schedules_{};
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
std::vector<Diagnostic> problems(std::span<const Observation>);
/// The bounds of a parameter: its own, or the default for its initial value.
FreeParameter bounded(const FreeParameter&, double initial);

}  // namespace sdma::inline v0::detail
