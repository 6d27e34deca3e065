// SPDX-License-Identifier: MIT
#pragma once
// What sdma explore reports: the best candidates, with uncertainties, as a table or as schedules.
//
//   auto e = json::explored("chunk=64K", *search(...), machine);
//   write_text("-", explore_table(e));
//
// Pure functions; any thread may call them. They allocate.
#include "json/explore.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

using json::Explored;

/// The best candidates, one per line, and sentences about the search.
std::string explore_table(const Explored&);
/// The best candidate of each search, one per line, and sentences about the searches.
std::string explore_sweep_table(const std::vector<Explored>&);
/// Candidate i as FLAT, after a comment that says where it comes from.
std::string explore_file(const Explored&, std::size_t i, const std::string& command, const MachineDescription&);

}  // namespace sdma::tool
