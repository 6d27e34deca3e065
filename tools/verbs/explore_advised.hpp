// SPDX-License-Identifier: MIT
#pragma once
// `sdma explore --advise`: which schedule an all-gather and a product of matrices should take, without a search.
//
//   return explore_advised({.shapes = *parse_shapes("1K..16Kx1024x8192")}, machine);
#include "sdma/search/advise.hpp"
#include "shared_options.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool {

struct AdviseArguments {
  std::vector<GemmShape> shapes{};
  std::string times{};     ///< a file; "": those of the model
  MachineOptions given{};  ///< for the command that simulates the pick
  bool json = false;
};
/// "8192x1024x8192", with K for 1024; several with commas. M may be a range that doubles: 1K..16K.
std::optional<std::vector<GemmShape>> parse_shapes(std::string_view);
int explore_advised(const AdviseArguments&, const MachineDescription&);

}  // namespace sdma::tool
