// SPDX-License-Identifier: MIT
#pragma once
// The kernel's log of the node: page faults as the driver reports them, in the order of their times. It has the
// faults of the processes that use a node now; those of a process that has ended are gone. Any thread may call
// it; it allocates.
#include <string>

namespace sdma::emulator {

std::string kernel_log();

}  // namespace sdma::emulator
