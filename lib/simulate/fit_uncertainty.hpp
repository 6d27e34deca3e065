// SPDX-License-Identifier: MIT
#pragma once
// How certain the values of a fit are. Internal to fit.
//
//   auto u = uncertainty(f, best);        // nothing if a limit was reached before all derivatives were known
//
// Thread-safety: none. No errors.
#include "fit_objective.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

struct Certainty {
  struct Parameter {
    Fit::State state{};
    double deviation{};            ///< standard deviation, in the parameter's unit
    double from{}, to{};           ///< Fit::State::range: these values fit equally well
    bool lower{};                  ///< Fit::State::at_bound: the lower one
    std::vector<Cost> alike{};     ///< cannot be distinguished from these
    std::vector<Cost> together{};  ///< known only together with these
  };
  std::vector<Parameter> parameters{};
  std::vector<double> correlation{};  ///< as in Fit
  Covariance covariance{};            ///< as in MachineDescription
  std::vector<Fit::Alike> alike{};
  bool known = true;  ///< are the deviations determined?
};

std::optional<Certainty> uncertainty(Objective&, const Objective::Point&);

}}}  // namespace sdma::v0_3::detail
