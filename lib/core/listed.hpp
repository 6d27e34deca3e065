// SPDX-License-Identifier: MIT
#pragma once
// Names in a sentence.
//
//   listed({"a", "b", "c"}) == "a, b and c"
//
// Any thread may call it. It allocates. No errors.
#include "sdma/core/standard.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

inline std::string listed(const std::vector<std::string>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i)
    out.append(i == 0 ? "" : i + 1 == all.size() ? " and " : ", ").append(all[i]);
  return out;
}

}}  // namespace sdma::v0_3
