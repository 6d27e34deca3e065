// SPDX-License-Identifier: MIT
#pragma once
// Reads a file of names for addresses, as --names gives it: in the form of sdma/core/names.hpp. "-" is standard input.
//
//   const auto names = load_names(o.names);
//   if (!names) return report(names.error()), kInput;
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/names.hpp"
#include "sdma/core/result.hpp"

#include <string>

namespace sdma::tool {

Result<NameTable, Diagnostic> load_names(const std::string& path);

}  // namespace sdma::tool
