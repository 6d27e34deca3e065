// SPDX-License-Identifier: MIT
#pragma once
// A signed integer of 128 bits, for sums and products of addresses: the compiler's own.

namespace sdma { inline namespace v0_3 { namespace detail {

__extension__ typedef __int128 Wide;

}}}  // namespace sdma::v0_3::detail
