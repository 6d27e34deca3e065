// SPDX-License-Identifier: MIT
#pragma once
// A count and what it counts, for messages.
//
//   plural(1, "dword") == "1 dword"
//   plural(3, "dword") == "3 dwords"
//
// Any thread may call it. It allocates. No errors.
#include "sdma/core/standard.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// `one`: a noun whose plural ends with an s.
inline std::string plural(std::size_t n, std::string_view one) {
  return std::to_string(n).append(" ").append(one).append(n == 1 ? "" : "s");
}

}}  // namespace sdma::v0_3
