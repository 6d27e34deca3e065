// SPDX-License-Identifier: MIT
#pragma once
// Starts of a machine that one log has twice, as after `dmesg >> log.txt; dmesg >> log.txt`. Internal: log.hpp uses it.
//
//   unite_starts(lines, sources);        // the lines of the second time are gone; what only it has is of the first
//
// Two starts of a machine without ids are one if, in the time that both cover, they have the same lines at the same
// microseconds, and at least kLeastAlike of them: stamps of two starts differ. Pure; allocates in proportion to the
// lines. Any thread. No errors.
#include "log.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::size_t kLeastAlike = 2;
void unite_starts(std::vector<LogLine>& lines, std::vector<LogSource>& sources);

}}}  // namespace sdma::v0_3::detail
