// SPDX-License-Identifier: MIT
#pragma once
// A signed integer of 128 bits, for sums and products of addresses: the compiler's own.

namespace sdma::inline v0::detail {

__extension__ typedef __int128 Wide;

}  // namespace sdma::inline v0::detail
