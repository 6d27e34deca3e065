// SPDX-License-Identifier: MIT
#pragma once
// Injected failures, for the paths of a program that no healthy driver reaches.
//
//   SDMA_STAND_IN_FAIL="cuMemcpyAsync:3:719,cuInit:1:+700"
//
// The third call of cuMemcpyAsync returns 719 and does nothing else. With a "+", the call succeeds and the command that
// it enqueues fails, which kills the context. Calls are counted per function, from 1. Any thread may use it.
#include "abi.hpp"

namespace stand_in {

/// Counts a call of this function. Returns what the call must return at once, or kSuccess.
Status count_call(const char* function);

/// The code with which the command of the calling thread's present call must fail, or kSuccess. Asking takes it.
Status take_later_failure();

}  // namespace stand_in
