// SPDX-License-Identifier: MIT
#pragma once
// The text of a collective, and the values that options give its params.
//
//   const auto s = source_of(o);                          // o.variant is not automatic
//   parse_schedule(s.text, s.name, {.set = s.set})   ==   plan(o)->schedule
//   puts(with_params(s).c_str());                         // the same text, with these values as its defaults
//
// The texts are the files of share/sdma/collectives: each gives the schedule for any number of GPUs, any size and any
// of the options. Pure functions that allocate. No errors.
#include "options.hpp"
#include "sdma/schedule/text.hpp"

namespace collectives {

struct Source {
  std::string_view name{}, text{};                 ///< "all_gather.sdma", and what is in it
  std::vector<sdma::ParseOptions::Setting> set{};  ///< the params whose values are not those of the text
};
Source source_of(const Options&);

/// The text with these values in its lines `param NAME = VALUE`.
std::string with_params(const Source&);

}  // namespace collectives
