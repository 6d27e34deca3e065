// SPDX-License-Identifier: MIT
#pragma once
// A table of the best variant by collective, number of GPUs, size and prelaunch.
//
//   variant = choose(default_table(), {.collective = Collective::all_gather, .gpus = 8, .bytes = 64 << 10});   // b2b
//   auto mine = parse_table(text, "mine.txt");           // or a table of your own measurements
//
//   # collective  gpus  prelaunch  up_to  variant         a line gives the best variant up
//                                                         to a size; the first match wins
//   all_gather    2-8   yes        128K   b2b
//   all_gather    2-8   yes        512K   bcst
//   all_gather    2-8   any        max    pcpy
//
// The default is variants.txt beside this file, which names its source; the library contains a copy of it. A collective
// without a line uses pcpy, or swap if in place. Tables are plain values; any thread may use them. Errors: parse_table
// names the file and the line.
#include "options.hpp"
#include "sdma/core/result.hpp"

#include <string_view>
#include <vector>

namespace collectives {

struct TableRow {
  Collective collective{};
  bool in_place{};  ///< written all_to_all_in_place
  std::uint32_t least_gpus{}, most_gpus{};
  std::optional<bool> prelaunch{};  ///< nothing: any
  std::uint64_t up_to{};            ///< bytes, inclusive
  Variant variant{};
};
using Table = std::vector<TableRow>;

sdma::Result<Table, sdma::Diagnostic> parse_table(std::string_view text, std::string_view file = "table");
const Table& default_table();
/// The variant of the first row that matches; if none does, pcpy, or swap if in place.
Variant choose(const Table&, const Options&) noexcept;

}  // namespace collectives
