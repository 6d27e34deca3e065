// SPDX-License-Identifier: MIT
#pragma once
// A plan as SOURCE with params: a schedule that a sweep can change, and that collective_perf takes as a variant.
//
//   const auto s = source_of(*plan(o));
//   puts(s.text.c_str());                                // param N, param bytes, loops; "" if there is no such form
//   parse_schedule(s.text, "a.sdma", {.set = {{"bytes", "64K"}}})    ==    plan(o with bytes = 64K)->schedule
//
//   sdma 1
//   param N = 8
//   param bytes = 1M
//   ...
//
// For any number of GPUs and any size, the text either gives the schedule that `plan` makes of the same options, or it
// is an error to read it. It is an error if some GPU has no part, and for swap if a part is not a multiple of 64 bytes;
// the name of a `let` says so. The text that is returned has been read, and gave the plan's own schedule.
//
// Pure functions that allocate. A plan without such a form is not an error: `why_not` says what it rests on.
#include "plan.hpp"

#include <string>

namespace collectives {

struct PlanSource {
  std::string text{};     ///< formatted; "" if there is none
  std::string why_not{};  ///< one phrase, if there is none
};

PlanSource source_of(const Plan&);

}  // namespace collectives
