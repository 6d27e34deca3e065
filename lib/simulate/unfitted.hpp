// SPDX-License-Identifier: MIT
#pragma once
// Which parameters measured mechanisms can determine, and from where their fit starts. Internal; no errors.
#include "sdma/simulate/measurements.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// Adds the free parameters, their bounds and their starts to a table of mechanisms that were measured on this node.
void free_parameters(const Topology&, Measurements&);

}}}  // namespace sdma::v0_3::detail
