// SPDX-License-Identifier: MIT
#pragma once
// The part of a time that a machine's model_error applies to. Internal.
//
// The rates of links and engines are public and well known; what a fit leaves over are errors of latencies. So the part
// of a round in which bytes move has only the uncertainty of the rates, and that in which kernels compute has none. For
// a ratio, the parts of both times count equally.
#include "sdma/simulate/simulate.hpp"

#include <cmath>

namespace sdma { inline namespace v0_3 { namespace detail {

inline double latent_part(const Simulation& s) noexcept { return s.ns > 0 ? 1 - s.working_ns / s.ns : 0; }
inline double latent_part(const Simulation& a, const Simulation& b) noexcept {
  return std::hypot(latent_part(a), latent_part(b)) / std::sqrt(2.0);
}

}}}  // namespace sdma::v0_3::detail
