// SPDX-License-Identifier: MIT
#pragma once
// Shared by fmt, run, check and simulate: a schedule from a file, and the values of its params.
//
//   add_settings(verb, options.parse.set);                          --set N=8 --set chunk=1M
//   auto s = load_schedule(path, text, parse_options);              reports every error of the text
#include "sdma/schedule/text.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::tool {

class VerbOptions;

void add_settings(VerbOptions&, std::vector<ParseOptions::Setting>&);
/// An option that may be repeated. `form`: the form of each value, such as NAME=PATH.
void add_pairs(VerbOptions&, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>&, const std::string& doc);

/// The schedule of a text; nothing if the text has errors, which are then reported.
std::optional<Schedule> load_schedule(const std::string& path, const std::string& text, ParseOptions,
                                      SourceMap* map = nullptr);

}  // namespace sdma::tool
