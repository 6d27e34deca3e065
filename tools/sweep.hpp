// SPDX-License-Identifier: MIT
#pragma once
// `sdma simulate --sweep`: every file at every value, as a table, CSV, JSON or a picture.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/sweep.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

struct SweepRequest {
  std::vector<std::string> paths{};
  ParseOptions parse{};
  MachineDescription machine{};
  std::vector<SweepAxis> axes{};  ///< one or two
  std::string csv{}, plot{};      ///< files; "": none
  bool json = false;              ///< on standard output, instead of the table
};

/// Prints the times, and how much faster each file is than the first. If a parameter of the machine changes no time
/// between two of its values, names what caps it. Returns an exit code, after an error has been reported.
int sweep(const SweepRequest&);

}  // namespace sdma::tool
