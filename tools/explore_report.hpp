#pragma once
// What sdma explore reports: the best candidates with the uncertainty of their times and ratios, as a table, JSON, or schedules.
//
//   auto e = explored("chunk=64K", *search(...), machine);      // simulates again, for the uncertainties
//   write_text("-", explore_table(e));
//
// Pure functions; any thread may call them. They allocate.
#include "sdma/search/search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sdma::tool {

/// A search, and what is known about the times that it found.
struct Explored {
  struct Row {
    double uncertainty_ns{};
    std::optional<SpeedUp> over_default{};  ///< nothing if the default is refused
    SpeedUp over_best{1, 0};                ///< how fast it is, compared with the best
  };
  std::string title{};  ///< the swept value, "chunk=64K", or ""
  SearchResult result{};
  std::vector<Row> rows{};  ///< of result.best
};

Explored explored(std::string title, SearchResult, const MachineDescription&);

/// The best candidates, one per line, and sentences about the search.
std::string explore_table(const Explored&);
/// The best candidate of each search, one per line, and sentences about the searches.
std::string explore_sweep_table(const std::vector<Explored>&);
std::string explore_json(const std::vector<Explored>&, const MachineDescription&);
/// Candidate i as FLAT, after a comment that says where it comes from.
std::string explore_file(const Explored&, std::size_t i, const std::string& command, const MachineDescription&);

}  // namespace sdma::tool
