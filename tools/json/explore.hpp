// SPDX-License-Identifier: MIT
#pragma once
// The answer of `sdma explore`: the best candidates of each search, with the uncertainty of their times and ratios.
//
//   const auto e = json::explored("chunk=64K", *search(...), machine);      // of a search with `spreads`
//   const Json j = json::of({&e, 1}, machine);
//   j["searches"][0]["best"][0]["ns"]
#include "json.hpp"
#include "sdma/search/search.hpp"
#include "sdma/simulate/lower_bound.hpp"

#include <string>
#include <vector>

namespace sdma::json {

/// A search, and what is known about the times that it found.
struct Explored {
  struct Row {
    /// Nothing if the time was over, or if it cannot be simulated within a parameter's uncertainty; so are the ratios.
    std::optional<double> uncertainty_ns{};
    std::optional<SpeedUp> over_default{};     ///< nothing if the default is refused, too
    std::optional<SpeedUp> over_best{};        ///< how fast it is, compared with the best
    std::optional<Bounds> over_best_joules{};  ///< the joules that it takes more than the best
  };
  std::string title{};  ///< the swept value, "chunk=64K", or ""
  SearchResult result{};
  std::vector<Row> rows{};            ///< of result.best
  std::optional<LowerBound> least{};  ///< of the best
  bool energy = false;                ///< joules were asked for
};

Explored explored(std::string title, SearchResult, const MachineDescription&);

Json of(const SpeedUp&);
std::string text_of(const SpeedUp&);  ///< "1.88 +- 0.15", "0.98 +- 0.03 tie"
Json of(const Explored&);
/// What Ctrl-C left undone.
struct Interruption {
  bool interrupted{};                       ///< the last search, if there is one, was cut short
  std::vector<std::string> not_searched{};  ///< the swept values that were not reached: "chunk=64K"
};
/// All searches of a command, their machine, and its `defaults`, as in a simulation.
Json of(std::span<const Explored>, const MachineDescription&, const Interruption& = {});

}  // namespace sdma::json
