// SPDX-License-Identifier: MIT
#pragma once
// Fits a machine to measurements: finds the values of parameters with which the simulator comes closest to times,
// speed-ups and shares that were measured elsewhere.
//
//   std::vector<Observation> o;
//   o.push_back(Observation::time("copy 64K", copy_64k, 8670, 120));          // took 8.67 us, +- 0.12 us
//   o.push_back(Observation::ratio("b2b", b2b, pcpy, 2.58));                  // b2b is 2.58 times as fast as pcpy
//   o.push_back(Observation::share("copy 64K", copy_64k, Phase::sync, 27));   // 27 % of its time is the phase sync
//   auto f = fit(o, *mi300x_machine(), {.free = {{Cost::engine_poll}, {Cost::engine_latency, 500, 5000}}});
//   if (!f) for (const auto& d : f.error()) puts(to_string(d).c_str());
//   puts(to_table(f->machine).c_str());             // value, uncertainty and source of each parameter
//
// The fit minimises the sum of |weight * error| ^ power over all observations. The error of a time or a ratio is
// predicted / measured - 1; the error of a share is (predicted - measured) / 100.
//
// Errors with a common cause. All ratios to one measured baseline share the baseline's error: where it was measured 10
// % too slow, each of them is 10 % too large. With FitOptions::common, an observation's error is the sum of its own and
// one that its group shares, and the sum above has the term |shared / common| ^ power for each group instead. The
// parameters then explain the differences within a group. They explain an error that is common to the whole group only
// as far as this costs less than a shared error.
//
// Method. A parameter is varied in its logarithm, within its bounds. Levenberg-Marquardt with finite differences comes
// first. Times have kinks where another resource becomes the bottleneck, and a parameter such as engine.window_bytes
// acts in steps; a search then varies each parameter alone, with steps that shrink to 0.1 %. Finally, the derivatives
// of all predictions give uncertainties and correlations. No random number is used: the same arguments give the same
// result, unless the deadline or the callback ends the fit.
//
// Uncertainty. The result's `uncertainty` of a free parameter is one standard deviation: if the model is right and
// errors are independent and normal, the true value lies within it in 68 of 100 cases. It is computed from the
// derivatives at the result, as for least squares. Each observation counts with the variance of the residuals (the sum
// of squares divided by observations less parameters) or with its own `spread`, whichever is larger; the other free
// parameters may move, too. The errors of a model are not independent, so for tables that it does not match well the
// uncertainty is a guide, not a limit. It never reaches beyond the bounds. If there are no more observations than
// parameters, and no spread is known, the uncertainty of the initial machine stays, and the source says "; its
// uncertainty is not determined".
//
// The machine also gets a covariance. It covers the parameters that the measurements determine, and the uncertain
// parameters that were not free, because the fit would compensate for another value of one of these. If only the sum of
// two parameters is known, each is uncertain, but a time in which both occur is not. A file keeps it (machine.hpp), and
// `sensitivity` uses it.
//
// What measurements cannot decide is part of the result:
//
//   state         meaning                                   value    uncertainty     source
//   fitted        the measurements determine it             fitted   as above        "fitted: NOTE"
//   range         every value of a range fits equally well  fitted   to the far end  "fitted: NOTE; 65536 to 98303 fit
//                                                                                    equally well"
//   at_bound      the best value is one of its bounds       fitted   as above        "fitted: NOTE; at its lower bound"
//   undetermined  no observation depends on it              initial  initial         "not determined by these
//                                                                                    measurements; ..."
//
// If the estimates of two parameters have a correlation above kAlike, only a combination of both is known: the source
// of each adds "; cannot be distinguished from engine.release_ns". A parameter that three or more share in this way
// adds "; known only together with ...".
//
// Costs: a few hundred evaluations for ten parameters; each evaluation simulates each distinct schedule once. Schedules
// are compared by pointer: share them between observations. Any thread may fit; nothing is shared. Allocates.
// Errors: a Diagnostic for each observation that has no schedule, no baseline or no valid value, and for each that
// cannot be simulated (`where` is its id); and for options that cannot be used: no free parameter, one named twice,
// bounds that exclude each other.
#include "sdma/core/deadline.hpp"
#include "sdma/simulate/simulate.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// One measurement of a schedule.
struct Observation {
  /// What was measured.
  enum class Kind : std::uint8_t {
    time,   ///< Simulation::ns: the time of the last round
    ratio,  ///< the baseline's time / the schedule's time: a speed-up
    share,  ///< a phase's percentage of the time
  };
  std::string id{};                            ///< for messages
  Kind kind{};                                 ///< what was measured
  std::shared_ptr<const Schedule> schedule{};  ///< whose time it is
  std::shared_ptr<const Schedule> baseline{};  ///< of a ratio
  Phase phase{};                               ///< of a share
  double value{};                              ///< ns, a ratio, or percent
  double spread{};                             ///< standard deviation of `value`, in its unit; 0: not known
  double weight = 1;                           ///< 0: predicted, but not fitted to
  std::string
      group{};  ///< observations with a common cause of error, such as a baseline: FitOptions::common. Empty: none

  /// The time of a schedule, in ns.
  static Observation time(std::string id, std::shared_ptr<const Schedule> s, double ns, double spread_ns = 0) {
    return {.id = std::move(id), .kind = Kind::time, .schedule = std::move(s), .value = ns, .spread = spread_ns};
  }
  /// A speed-up: the time of `baseline`, divided by the time of `s`.
  static Observation ratio(std::string id, std::shared_ptr<const Schedule> s, std::shared_ptr<const Schedule> baseline,
                           double value, double spread = 0) {
    return {.id = std::move(id),
            .kind = Kind::ratio,
            .schedule = std::move(s),
            .baseline = std::move(baseline),
            .value = value,
            .spread = spread};
  }
  /// The part of the time that a phase takes, in percent.
  static Observation share(std::string id, std::shared_ptr<const Schedule> s, Phase phase, double percent,
                           double spread = 0) {
    return {.id = std::move(id),
            .kind = Kind::share,
            .schedule = std::move(s),
            .phase = phase,
            .value = percent,
            .spread = spread};
  }
};

/// A parameter that a fit may change.
struct FreeParameter {
  Cost cost{};  ///< the parameter
  /// Bounds. Both 0: a hundredth to a hundred times the initial value, within what the parameter can be.
  double low{}, high{};
  std::string note{};  ///< for the source: which measurements determine it. Empty: "N measurements"
};

/// The state of a fit, for its callback.
struct FitProgress {
  std::string_view stage{};                        ///< "descent", "search" or "uncertainty"
  std::uint64_t simulations{}, max_simulations{};  ///< how many so far, and FitOptions::max_simulations
  double mean_error{}, worst_error{};              ///< of the best values so far: 0.09 is 9 %
  std::size_t part{}, parts{};                     ///< of held_out: how many parts were predicted, of how many
};

struct FitOptions {
  std::vector<FreeParameter> free{};  ///< those that are fitted; the others keep their values
  /// The standard deviation of an error that a group shares, relative to that of its own error. 0: none is shared.
  double common = 0;
  double power = 2;  ///< 2: least squares. A larger power gives more weight to the worst errors. From 1 to 16
  std::uint64_t max_simulations = 1000000;                     ///< after so many, the fit ends
  Deadline deadline = Deadline::in(std::chrono::minutes(10));  ///< at this time, the fit ends
  /// Called after each evaluation. If it returns false, the fit ends with the best values so far.
  std::function<bool(const FitProgress&)> progress{};
  /// How much more a schedule unlike those of the fit may be off: a part of model_error. 0.1 is 10 %.
  double unlike = 0;
};

/// A machine fitted to observations, and how well it fits.
struct Fit {
  /// How well the observations determine a parameter: fitted, range,
  /// at_bound or undetermined, as the table at the top of this header says.
  enum class State : std::uint8_t { fitted, range, at_bound, undetermined };
  /// `converged`: the search found no better values; `simulations`, `deadline`:
  /// that limit was reached; `stopped`: the callback ended the fit.
  enum class End : std::uint8_t { converged, simulations, deadline, stopped };
  /// What the fitted machine predicts for an observation.
  struct Prediction {
    double value{};   ///< in the observation's unit
    double error{};   ///< as in the sum, without weight; the group's part is in it
    double shared{};  ///< the part of `error` that its group shares
  };
  /// Two parameters whose effects the observations can hardly separate.
  struct Alike {
    Cost a{}, b{};         ///< the two
    double correlation{};  ///< -1 to 1; its absolute value exceeds kAlike
  };

  MachineDescription machine{};  ///< the initial one, with new values, uncertainties and sources of the free parameters
  std::vector<State> states{};   ///< in the order of FitOptions::free
  std::vector<double> correlation{};      ///< a square matrix in the same order, row by row; 0 for what is not `fitted`
  std::vector<Alike> alike{};             ///< the pairs whose |correlation| exceeds kAlike
  std::vector<Prediction> predictions{};  ///< in the order of the observations
  double mean_error{}, worst_error{};     ///< of |error| over the observations whose weight is above 0
  std::size_t worst{};                    ///< the observation with the worst error
  std::uint64_t simulations{};            ///< how many it took
  /// What ended the search. If not `converged`, the values are the best so far; a fit that ended before the
  /// derivatives were complete has no uncertainties (they are those of the initial machine) and no correlations, and
  /// the sources say so.
  End end{};

  static constexpr double kAlike = 0.95;  ///< pairs with a larger |correlation| are in `alike`
};

Result<Fit, std::vector<Diagnostic>> fit(std::span<const Observation>, const MachineDescription& initial,
                                         const FitOptions&);

/// The predictions of a machine as it is, in the order of the observations. `common`: as in FitOptions.
Result<std::vector<Fit::Prediction>, std::vector<Diagnostic>> predict(std::span<const Observation>,
                                                                      const MachineDescription&, double common = 0);

/// The machine of a fit, for a file: values of free parameters with three or four digits, uncertainties with two, sizes
/// in whole bytes. A value that is not `fitted` or `at_bound` stays as it is.
MachineDescription rounded(const Fit&, const FitOptions&);

/// "fitted", "a range", "at a bound", "undetermined".
std::string_view name(Fit::State) noexcept;
/// Why the fit ended, as a clause: "the search converged", "the limit of simulations was reached", ...
std::string_view name(Fit::End) noexcept;

}}  // namespace sdma::v0_3
