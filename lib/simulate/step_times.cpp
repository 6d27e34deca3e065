// SPDX-License-Identifier: MIT
// Times of a server's steps and recorded arrivals: reads their tables, and looks a shape up between measured ones.
#include "../core/csv_table.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/serving.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::array<std::string_view, 6> kStepColumns{"step", "way", "batch", "cached", "new", "ms"};
constexpr std::string_view kArrivalColumns[] = {"arrival", "prefix", "prompt", "tokens"};

/// Reads a table that has to have rows.
std::optional<Diagnostic> read_rows(std::string_view text, std::string_view file, const detail::CsvTable::Take& head,
                                    const detail::CsvTable::Take& row) {
  detail::CsvTable table(file);
  if (auto wrong = table.read(text, head, row)) return wrong;
  if (table.rows() == 0)
    return error_at({.file = std::string(file)}, "the table has no rows",
                    "its first line names the columns; docs/serving.md has an example");
  return {};
}

/// Where a value lies between the keys of a map: at one of them, or between two.
struct AxisPlace {
  std::uint64_t low{}, high{};
  double part{};  ///< how far it is on the way from low to high
  bool beyond{};  ///< it is outside: both are the nearest key
};
template <class Map> AxisPlace place_on_axis(const Map& m, std::uint64_t v) {
  const auto above = m.lower_bound(v);
  if (above == m.end()) return {m.rbegin()->first, m.rbegin()->first, 0, true};
  if (above->first == v || above == m.begin()) return {above->first, above->first, 0, above->first != v};
  const auto low = std::prev(above)->first, high = above->first;
  return {low, high, static_cast<double>(v - low) / static_cast<double>(high - low), false};
}

}  // namespace

std::optional<StepTimes::Time> StepTimes::time(const Grid& grid, std::uint64_t first, std::uint64_t second) {
  if (grid.empty()) return {};
  const auto in_row = [second](const auto& row) {
    const auto b = place_on_axis(row, second);
    return Time{std::lerp(row.at(b.low), row.at(b.high), b.part), b.beyond};
  };
  const auto b = place_on_axis(grid, first);
  const auto low = in_row(grid.at(b.low)), high = in_row(grid.at(b.high));
  return Time{std::lerp(low.ms, high.ms, b.part), b.beyond || low.beyond || high.beyond};
}

Result<StepTimes, Diagnostic> step_times(std::string_view text, std::string_view file) {
  StepTimes out;
  const auto head = [](const auto& all) -> std::string {
    if (all.size() >= kStepColumns.size() && std::equal(kStepColumns.begin(), kStepColumns.end(), all.begin()))
      return "";
    return fmt::format("the first line does not begin with {}", fmt::join(kStepColumns, ","));
  };
  const auto row = [&out](const auto& all) -> std::string {
    std::array<std::uint64_t, 3> sizes{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto v = parse_count(all[2 + i]);
      if (!v) return fmt::format("'{}' is not a number for {}", all[2 + i], kStepColumns[2 + i]);
      sizes[i] = *v;
    }
    const auto [batch, cached, fresh] = sizes;
    const auto ms = parse_real(all[5]);
    if (!ms || *ms <= 0) return fmt::format("'{}' is not a time in ms", all[5]);
    if (all[0] != "admit" && all[0] != "decode") return fmt::format("'{}' is neither admit nor decode", all[0]);
    if (all[0] == "admit" && batch != 1) return "requests are admitted one at a time: batch is 1";
    if (all[0] == "decode" && batch == 0) return "a decode step has one request at least";
    const bool is_new = all[0] == "admit" ? out.admit[all[1]][cached].try_emplace(fresh, *ms).second
                                          : out.decode[cached + fresh].try_emplace(batch, *ms).second;
    return is_new ? "" : "this step is there twice";
  };
  if (auto wrong = read_rows(text, file, head, row)) return *std::move(wrong);
  return out;
}

Result<std::vector<ServingRequest>, Diagnostic> recorded_arrivals(std::string_view text, std::string_view file,
                                                                  const ServingRequest& each) {
  std::vector<ServingRequest> out;
  std::vector<std::string> columns;
  const auto head = [&columns](const auto& all) -> std::string {
    for (const auto& c : all) {
      if (std::find(std::begin(kArrivalColumns), std::end(kArrivalColumns), c) == std::end(kArrivalColumns))
        return fmt::format("'{}' is not one of the columns {}", c, fmt::join(kArrivalColumns, ", "));
      if (std::count(all.begin(), all.end(), c) > 1) return fmt::format("the column '{}' is there twice", c);
    }
    columns = all;
    return std::count(all.begin(), all.end(), kArrivalColumns[0]) == 0 ? "the column 'arrival' is missing" : "";
  };
  const auto row = [&](const auto& all) -> std::string {
    auto r = each;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (columns[i] == kArrivalColumns[0]) {
        const auto at = parse_real(all[i]);
        if (!at || *at < 0) return fmt::format("'{}' is not a time in seconds", all[i]);
        if (!out.empty() && *at < out.back().arrival) return "it arrives before the row above: sort them by arrival";
        r.arrival = *at;
        continue;
      }
      const auto n = parse_count(all[i]);
      if (!n) return fmt::format("'{}' is not a number of tokens", all[i]);
      (columns[i] == kArrivalColumns[1] ? r.prefix : columns[i] == kArrivalColumns[2] ? r.prompt : r.tokens) = *n;
    }
    out.push_back(r);
    return "";
  };
  if (auto wrong = read_rows(text, file, head, row)) return *std::move(wrong);
  return out;
}

}}  // namespace sdma::v0_3
