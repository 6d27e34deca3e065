// SPDX-License-Identifier: MIT
// must not compile: GpuVa
#include "sdma/packets/copy.hpp"

std::uint64_t where = 0x7f1122334000;
sdma::CopyLinear copy{.src = where, .dst = sdma::GpuVa{0x1000}, .bytes = 64};
