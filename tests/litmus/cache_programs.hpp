// SPDX-License-Identifier: MIT
#pragma once
// The litmus programs that need a compute kernel: only the software engine's World has one.
#include "litmus/litmus.hpp"

namespace sdma::litmus {

std::vector<Program> cache_programs();  ///< a kernel's L2: C

}  // namespace sdma::litmus
