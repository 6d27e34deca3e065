// SPDX-License-Identifier: MIT
#pragma once
// Judges stale-wait by what it says: a wait may be satisfied before a certain post has landed.
//
//   for (const auto& f : report.findings)
//     if (f.diagnostic.rule == "stale-wait" && passes_early(schedule, f, {.profile = profile}) == false)
//       it is wrong
//
// explore() does not answer this: a wait that is satisfied early need not break anything, and the reduced search leaves
// out orders that break nothing. So this search tries every step, and needs more states.
#include "explore.hpp"

#include <optional>

namespace sdma::explore {

/// Does an execution satisfy the finding's last place before the place before it has landed? nullopt: this is not
/// known, because the search was cut off, or because the places are not found in the schedule.
std::optional<bool> passes_early(const Schedule&, const CheckFinding&, const ExploreOptions& = {});

}  // namespace sdma::explore
