// SPDX-License-Identifier: MIT
#pragma once
// The two searches of a fit for a minimum. Internal to fit.
//
//   auto best = *f.initial();
//   descend(f, best); search(f, best);     // each returns false if a limit ended it; `best` is never worse than before
//
// `descend` is Levenberg-Marquardt. Where the sum is of a higher power than 2, each residual is the power of its error
// that makes the sum one of squares. `search` varies one parameter at a time, and repeats what helped (Hooke and
// Jeeves): it needs no derivatives, so kinks and steps do not stop it.
// Thread-safety: none. No errors.
#include "fit_objective.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// Derivatives of errors with respect to the logarithms: column i is that
/// of parameter i. A column that the measurements do not determine is zero.
using Columns = std::vector<std::vector<double>>;
/// The relative step of finite differences.
inline constexpr double kDifference = 0.01;

bool descend(Objective&, Objective::Point& best);
bool search(Objective&, Objective::Point& best);

}}}  // namespace sdma::v0_3::detail
