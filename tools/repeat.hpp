// SPDX-License-Identifier: MIT
#pragma once
// What `sdma check` and `sdma simulate` do with a bundle (sdma/search/bundle.hpp): they repeat it, and say what
// differs.
//
//   if (is_bundle(text)) return repeat(path, text, json);         // 1: the verdict or the prediction differs
#include "sdma/search/bundle.hpp"

namespace sdma::tool {

int repeat(const std::string& path, std::string_view text, bool json);

}  // namespace sdma::tool
