// SPDX-License-Identifier: MIT
#pragma once
// Rows of cells as a table for people: each column as wide as its widest cell, two blanks between columns. Internal.
//
//   aligned({{"", "time"}, {"1", "20.92 us"}})
//
// Allocates. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Requires rows of the same length, and one at least.
inline std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}}}  // namespace sdma::v0_3::detail
