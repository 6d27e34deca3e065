// SPDX-License-Identifier: MIT
#include "sdma/packets/copy.hpp"

inline constexpr std::uint32_t kLimit = std::uint32_t{1} << 30;

sdma::CopyLinear longest{.bytes = kLimit};
