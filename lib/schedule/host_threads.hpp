// SPDX-License-Identifier: MIT
#pragma once
// The host threads of a run, and the threads that stand in for kernels. Internal.
//
//   perform(run, rounds);        // returns when all have ended; findings are in `run`
//
// One thread per host block and kernel; the first failure stops all. With several ranks, each rank has all threads, and
// each thread performs those actions that concern its rank (team.hpp).
#include "rounds.hpp"
#include "run_state.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

void perform(RunState&, Rounds&);

}}}  // namespace sdma::v0_3::detail
