// SPDX-License-Identifier: MIT
#pragma once
// The text of a collective, and the values that options give its params.
//
//   const auto s = source_of(o);                          // o.variant is not automatic
//   parse_schedule(s.text, s.name, {.set = s.set})   ==   plan(o)->schedule
//   puts(with_params(s).c_str());                         // the same text, with these values as its defaults
//
// The texts are the files of share/sdma/collectives: each gives the schedule for any number of GPUs, any size and any
// of the options. In two collectives, kernels add the parts, which takes compute units: they have a text, but no
// Options.
//
//   auto r = reduction("all_reduce");
//   if (r && set_param(*r, "variant", "swing")) puts(with_params(*r).c_str());
//
// Pure functions that allocate. No errors.
#include "options.hpp"
#include "sdma/core/node_sizes.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/schedule/text.hpp"

#include <optional>

namespace collectives {

struct Source {
  std::string_view name{}, text{};                 ///< "all_gather.sdma", and what is in it
  std::vector<sdma::ParseOptions::Setting> set{};  ///< the params whose values are not those of the text
};
Source source_of(const Options&);

/// The text of reduce_scatter or all_reduce; nothing for any other name.
std::optional<Source> reduction(std::string_view collective);
/// The text of all_gather, all_to_all or broadcast over several nodes (docs/nodes.md); nothing for any other name.
std::optional<Source> over_nodes(std::string_view collective);
/// How many GPUs each node has, as these texts take them.
sdma::NodeSizes nodes_of(const sdma::Topology&);
/// Gives a param of the text this value. False if the text has no such param.
bool set_param(Source&, std::string_view param, std::string value);

/// The text with these values in its lines `param NAME = VALUE`.
std::string with_params(const Source&);

}  // namespace collectives
