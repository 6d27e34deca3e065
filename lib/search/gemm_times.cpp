// SPDX-License-Identifier: MIT
// Looks up how long a product of matrices takes in a table that was measured, and reads such tables.
#include "sdma/search/gemm_times.hpp"

#include "../core/csv_table.hpp"
#include "sdma/core/number.hpp"
#include "search/h200_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::array<std::string_view, 6> kGemmColumns{"shapes", "op", "m", "n", "k", "us"};
constexpr std::array<std::string_view, 2> kGemmOps{"mm", "mm_add"};
/// The public rate of an MI300X in bf16, with normal random data (AMD, February 2025).
constexpr GemmShape kPublicShape{.m = 4096, .n = 4864, .k = 32896};
constexpr double kPublicFlopsPerNs = 708e3;

using GemmKey = std::array<std::uint64_t, 3>;

class GemmTable {
 public:
  explicit GemmTable(std::string_view file) : file_(file), table_(file) {}

  Result<GemmTimes, std::vector<Diagnostic>> run(std::string_view text) {
    auto wrong = table_.read(text, &GemmTable::head, [this](const auto& all) { return row(all); });
    if (!wrong) wrong = fill();
    if (wrong) return std::vector{*std::move(wrong)};
    judge();
    out_.source = file_;
    return std::move(out_);
  }

 private:
  using Wrong = detail::CsvTable::Wrong;

  static Wrong head(const std::vector<std::string>& all) {
    if (all.size() >= kGemmColumns.size() && std::equal(kGemmColumns.begin(), kGemmColumns.end(), all.begin()))
      return {};
    return {fmt::format("the first line does not begin with {}", fmt::join(kGemmColumns, ",")),
            "share/measured/h200/gemm.py writes such a table"};
  }
  Wrong row(const std::vector<std::string>& all) {
    const auto op = std::find(kGemmOps.begin(), kGemmOps.end(), all[1]);
    if (op == kGemmOps.end()) return fmt::format("'{}' is neither mm nor mm_add", all[1]);
    GemmKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
      const auto v = parse_count(all[2 + i]);
      if (!v || *v == 0) return fmt::format("'{}' is not a number of rows or columns", all[2 + i]);
      key[i] = *v;
    }
    const auto us = parse_real(all[5]);
    if (!us || *us <= 0) return fmt::format("'{}' is not a time in us", all[5]);
    constexpr double kNsPerUs = 1e3;
    const auto ns = *us * kNsPerUs;
    const auto which = static_cast<std::size_t>(op - kGemmOps.begin());
    if (all[0] != "grid") return others_.push_back({{key[0], key[1], key[2]}, which != 0, ns}), Wrong{};
    return ns_[which].try_emplace(key, ns).second ? Wrong{} : Wrong{"this product is there twice"};
  }

  /// The grid: all combinations of its sides.
  std::optional<Diagnostic> fill() {
    for (const auto& [key, ns] : ns_[0])
      for (std::size_t i = 0; i < key.size(); ++i) out_.grid[i].push_back(key[i]);
    for (auto& side : out_.grid) {
      std::sort(side.begin(), side.end());
      side.erase(std::unique(side.begin(), side.end()), side.end());
      if (side.size() < 2) return table_.wrong("the rows of grid need two values of m, n and k at least");
    }
    for (std::size_t op = 0; op < kGemmOps.size(); ++op)
      for (const auto m : out_.grid[0])
        for (const auto n : out_.grid[1])
          for (const auto k : out_.grid[2]) {
            const auto at = ns_[op].find({m, n, k});
            if (at == ns_[op].end())
              return table_.wrong(fmt::format("the grid has no row {},{},{},{}", kGemmOps[op], m, n, k),
                                  "it needs all combinations of its m, n and k, each as mm and as mm_add");
            out_.ns[op].push_back(at->second);
          }
    if (ns_[1].size() != ns_[0].size()) return table_.wrong("mm_add has shapes that mm does not have");
    return {};
  }

  void judge() {
    auto& j = out_.judged;
    for (const auto& r : others_) {
      const auto t = out_.time(r.shape, r.adds);
      if (!t) {
        ++j.below;
        continue;
      }
      const auto error = std::abs(t->ns / r.ns - 1);
      j.mean += error;
      j.worst = std::max(j.worst, error);
      ++j.rows;
    }
    if (j.rows > 0) j.mean /= static_cast<double>(j.rows);
  }

  std::string file_;
  detail::CsvTable table_;
  struct Row {
    GemmShape shape{};
    bool adds{};
    double ns{};
  };
  std::array<std::map<GemmKey, double>, 2> ns_{};
  std::vector<Row> others_{};
  GemmTimes out_{};
};

}  // namespace

std::optional<GemmTimes::Time> GemmTimes::time(const GemmShape& shape, bool adds) const {
  const std::array<std::uint64_t, 3> sides{shape.m, shape.n, shape.k};
  std::array<std::size_t, 3> below{};  // the grid's point below the shape
  std::array<double, 3> part{};        // how far the shape is on the way to the next one
  double longer = 1;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto& g = grid[i];
    if (sides[i] < g.front()) return {};
    const auto side = std::min(sides[i], g.back());
    longer *= static_cast<double>(sides[i]) / static_cast<double>(side);
    while (below[i] + 2 < g.size() && g[below[i] + 1] <= side) ++below[i];
    const auto of = [&](std::uint64_t v) { return std::log(static_cast<double>(v)); };
    part[i] = (of(side) - of(g[below[i]])) / (of(g[below[i] + 1]) - of(g[below[i]]));
  }
  double log_ns = 0;
  constexpr unsigned kCorners = 8;
  for (unsigned corner = 0; corner < kCorners; ++corner) {
    double weight = 1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const bool next = (corner >> i & 1) != 0;
      weight *= next ? part[i] : 1 - part[i];
      at = at * grid[i].size() + below[i] + (next ? 1 : 0);
    }
    if (weight > 0) log_ns += weight * std::log(ns[adds ? 1 : 0][at]);
  }
  return Time{.ns = scale * longer * std::exp(log_ns), .beyond = longer > 1};
}

Result<GemmTimes, std::vector<Diagnostic>> gemm_times(std::string_view text, std::string_view file) {
  return GemmTable{file}.run(text);
}

std::string_view h200_gemm_csv() noexcept { return detail::kH200Gemm; }

GemmTimes mi300x_gemm_times() {
  auto out = *gemm_times(h200_gemm_csv(), "share/measured/h200/gemm.csv");
  const auto flops = 2.0 * static_cast<double>(kPublicShape.m * kPublicShape.n * kPublicShape.k);
  out.scale = flops / kPublicFlopsPerNs / out.time(kPublicShape)->ns;
  out.source = fmt::format(
      "a model of an MI300X: an H200's times by cuBLAS, times {:.3f}, by the public rate of one shape", out.scale);
  return out;
}

}}  // namespace sdma::v0_3
