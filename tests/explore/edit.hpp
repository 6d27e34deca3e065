// SPDX-License-Identifier: MIT
#pragma once
// Changes schedules: mutations, and shrinking to the least that still has a property.
//
//   mutate(schedule, random);                        one change; the schedule may have problems afterwards
//   auto least = shrink(schedule, [](const Schedule& s) { return still_wrong(s); });
#include "sdma/schedule/schedule.hpp"

#include <functional>
#include <random>
#include <vector>

namespace sdma::explore {

using Random = std::mt19937_64;
/// A number below `n`.
inline std::uint32_t below(Random& r, std::uint32_t n) { return static_cast<std::uint32_t>(r() % n); }

void mutate(Schedule&, Random&);

/// Adds the symbols, queues and hosts of `other`. With `after`, the hosts of both
/// that have the same number become one, which does the one and then the other.
void combine(Schedule&, Schedule other, bool after);

/// Removes expectations, packets, actions, queues, hosts, epochs and first values, as long as `holds` does. Requires
/// holds(s).
Schedule shrink(Schedule s, const std::function<bool(const Schedule&)>& holds);

}  // namespace sdma::explore
