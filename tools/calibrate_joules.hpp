// SPDX-License-Identifier: MIT
#pragma once
// The joules of sdma calibrate: terms of a machine's energy from a table of measured joules.
//
//   auto table = read_joules("energy.csv");                       // or perf/measure_joules.hpp
//   return calibrate_joules({.start = "builtin"}, table);
//
// Errors are reported; the result is the verb's exit code.
#include "sdma/simulate/energy_fit.hpp"

#include <string>

namespace sdma::tool {

using JoulesTable = Result<EnergyMeasurements, std::vector<Diagnostic>>;
struct JoulesArguments {
  std::string start{}, out{};  ///< out: a file for the machine, "-", or "": none
  std::string save{};          ///< a file for the table; "": none
  bool json = false;
};
JoulesTable read_joules(const std::string& path);
int calibrate_joules(const JoulesArguments&, const JoulesTable&);

}  // namespace sdma::tool
