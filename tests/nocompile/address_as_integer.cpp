// SPDX-License-Identifier: MIT
// must not compile: GpuVa
#include "sdma/packets/copy.hpp"

sdma::GpuVa where{0x1000};
sdma::CopyLinear copy{.src = where, .dst = where, .bytes = where};
