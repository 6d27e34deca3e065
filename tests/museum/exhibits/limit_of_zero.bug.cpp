// SPDX-License-Identifier: MIT
// must not compile: narrow
#include "sdma/packets/copy.hpp"

inline constexpr std::uint64_t kLimit = std::uint64_t{1} << 32;  // 0 in 32 bits

sdma::CopyLinear longest{.bytes = kLimit};  // refused
