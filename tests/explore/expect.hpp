// SPDX-License-Identifier: MIT
#pragma once
// Random expectations for a schedule, from one execution of it: most hold there, so a checker that follows only one
// execution, or the order of the text, would prove them. Whether all executions agree is the explorer's question.
//
//   const auto o = explore(schedule, options);
//   if (!o.broken()) expect(schedule, profile, o.last, random);    up to four expectations more
//
//   bytes     cells of buffers hold what others held at first, or hold at the end; one in four: any others
//   a value   a signal holds what it held at that end; one in four: something else
#include "edit.hpp"
#include "sdma/check/check.hpp"

namespace sdma::explore {

/// `last`: Outcome::last.
void expect(Schedule&, const Profile&, const std::vector<std::uint64_t>& last, Random&);

}  // namespace sdma::explore
