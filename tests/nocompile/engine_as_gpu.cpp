// SPDX-License-Identifier: MIT
// must not compile: EngineId
#include "sdma/core/units.hpp"

void place(sdma::GpuId, sdma::EngineId);
void wrong() { place(sdma::EngineId{14}, sdma::EngineId{14}); }
