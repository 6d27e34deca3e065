// SPDX-License-Identifier: MIT
#pragma once
// `sdma check --sweep`: a schedule with every value of a param.
//
//   CheckSweep sweep;
//   if (auto wrong = take_sweep("N=2..8", sweep); !wrong.empty()) ...
//   return check_swept(sweep, options, text, parse, json);           // text: of a schedule, or XML of MSCCL
#include "sdma/check/check.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

/// A param, and the values of it, as texts.
struct CheckSweep {
  std::string name{};
  std::vector<std::string> values{};
};

/// "2..8": each whole number; "2..64*2" and "2,3,5" as sweeps of other verbs have them. Returns what is wrong, or "".
std::string take_sweep(const std::string& given, CheckSweep& to);

/// Checks the text with each value of the param, and says for how many it is proved. Returns an exit code.
int check_swept(const CheckSweep&, const CheckOptions&, const std::string& text, ParseOptions, bool json);

}  // namespace sdma::tool
