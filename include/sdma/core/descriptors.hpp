// SPDX-License-Identifier: MIT
#pragma once
// For programs that may be started with standard input, output or error closed.
//
//   int main() {
//     sdma::keep_standard_descriptors();         // before anything is opened
//     ...
//   }
//
// If a descriptor from 0 to 2 is closed, the next file that the program opens gets its number, and messages go to that
// file. This function opens a substitute for each closed descriptor. A read of the substitute for standard input fails
// with EBADF, and so does a write to the substitute for standard output or error. Call it before other threads start.
// It does not report errors: if /dev/null cannot be opened, nothing changes.
#include "sdma/core/standard.hpp"

namespace sdma::inline v0 {

void keep_standard_descriptors() noexcept;

}  // namespace sdma::inline v0
