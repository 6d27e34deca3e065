// SPDX-License-Identifier: MIT
#pragma once
// The answers of `sdma calibrate`: a fit, what a machine predicts, and a fit judged by what it has not seen.
//
//   const auto f = fit(m.observations, m.from(start), options);
//   const Json j = json::of(*f, options, rounded(*f, options), m, predictions);
//   j["parameters"][0]["uncertainty"]         one standard deviation, in the parameter's unit
//
// Errors are fractions of the measured value; of a share, fractions of the whole.
#include "json.hpp"
#include "sdma/simulate/energy_fit.hpp"
#include "sdma/simulate/held_out.hpp"

#include <functional>

namespace sdma::json {

/// Errors of a machine at the measurements.
struct FitErrors {
  struct Kind {
    std::size_t count{};
    double mean{}, worst{};
    const Observation* at{};
    double predicted{};
  };
  Kind relative{}, share{};  ///< of times and speed-ups; of shares
};
/// Of the measurements that `counts` accepts, by their index; without it, of those that a fit uses.
FitErrors fit_errors(const Measurements&, std::span<const Fit::Prediction>,
                     const std::function<bool(std::size_t)>& counts = {});
/// "fitted" if a parameter of the machine was taken from the source of this measurement, else "predicted".
std::string_view state_of(const Measurements::Row&, const MachineDescription&);

/// `machine`: the one that is written, whose values are rounded. `predictions`: its own.
Json of(const Fit&, const FitOptions&, const MachineDescription& machine, const Measurements&,
        std::span<const Fit::Prediction> predictions);
/// What a machine predicts as it is: machine, measurements, and the errors of times and of shares.
Json predicted(const Measurements&, std::span<const Fit::Prediction>, const MachineDescription&);
/// The terms of the energy, each row beside them, and the largest errors.
Json of(const EnergyFit&);
/// The parts that were left out in turn, and the errors at what was left out.
Json of(const Measurements&, std::span<const HeldOut>);

}  // namespace sdma::json
