// SPDX-License-Identifier: MIT
#pragma once
// The tables and the conclusion of a sweep, as text.
//
//   Sweep s{...};                                       // Cases: what the command line asks for
//   puts(table(s, "fetch", &Times::fetch).c_str());
//   puts(conclusion(s, "fetch", &Times::fetch).c_str());
//
//      block           b2b x1            b2b x2
//                  us    GB/s        us    GB/s
//         4K    0.627    6.53     0.320   12.80
//
//   fetch, 256 blocks: the rate of one copy of 64M on one engine is 48.0 GB/s.
//   b2b, 1 engine: at least half of it from 16K on, at least 90 % from 256K on.
//   b2b, 2 engines: ...
//
// "From 16K on": all sizes of the sweep from 16K on reach the rate, and the size before does not. A rate that the
// largest size does not reach is not reached from any size on.
//
// Plain values; any thread. No errors.
#include "fetch_lanes.hpp"
#include "json/json.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace collectives::kv {

/// What is compared.
struct Cases {
  std::vector<std::uint64_t> sizes{16 << 10};  ///< bytes per block, ascending
  std::uint64_t blocks = 256, pool = 0;        ///< per request, and in the pool
  std::uint64_t large = 64 << 20;  ///< bytes of the one copy that the conclusion of several sizes compares with
  std::vector<std::uint32_t> engines{1};
  std::uint32_t queues = 1;  ///< on each engine
  std::vector<Way> ways{std::begin(kWays), std::end(kWays)};
  std::optional<double> kernel{};  ///< GB/s
  std::uint64_t rounds = 20, warm = 5;
  sdma::GpuId gpu{};

  bool sweeps() const noexcept { return sizes.size() > 1; }
};

struct Column {
  Way way{};
  std::uint32_t engines{};
  std::vector<Times> times{};  ///< of a request, by size
};

struct Sweep {
  Cases cases{};
  Times large{};  ///< of one copy of `cases.large` bytes; only a sweep of several sizes has it
  std::vector<Column> columns{};
};

/// GB/s.
inline double rate(const Sweep& s, const Column& c, std::size_t size, double Times::*direction) {
  return static_cast<double>(s.cases.blocks * s.cases.sizes[size]) / (c.times[size].*direction) / 1e9;
}

/// "at least half of it from 16K on", if `yes` is "at least half of it"; `no` says the opposite.
inline std::string reached(const Sweep& s, const Column& c, double Times::*direction, double least,
                           std::string_view yes, std::string_view no) {
  const auto& sizes = s.cases.sizes;
  auto first = sizes.size();
  while (first != 0 && rate(s, c, first - 1, direction) >= least) --first;
  if (first == sizes.size()) return fmt::format("{} at {}", no, sdma::size_text(sizes.back()));
  if (first == 0) return fmt::format("{} at every size", yes);
  return fmt::format("{} from {} on", yes, sdma::size_text(sizes[first]));
}

inline std::string table(const Sweep& s, std::string_view title, double Times::*direction) {
  auto text = fmt::format("{:<10}", title);
  for (const auto& c : s.columns) text += fmt::format("{:>18}", fmt::format("{} x{}", name(c.way), c.engines));
  text += fmt::format("\n{:>10}", "block");
  for (std::size_t i = 0; i < s.columns.size(); ++i) text += fmt::format("{:>11}{:>7}", "us", "GB/s");
  text += '\n';
  for (std::size_t size = 0; size < s.cases.sizes.size(); ++size) {
    text += fmt::format("{:>10}", sdma::size_text(s.cases.sizes[size]));
    for (const auto& c : s.columns)
      text += fmt::format("{:>11.3f}{:>7.2f}", c.times[size].*direction * 1e6 / static_cast<double>(s.cases.blocks),
                          rate(s, c, size, direction));
    text += '\n';
  }
  return text;
}

inline std::string conclusion(const Sweep& s, std::string_view title, double Times::*direction) {
  const auto large = static_cast<double>(s.cases.large) / (s.large.*direction) / 1e9;
  auto text = fmt::format("{}, {} blocks: the rate of one copy of {} on one engine is {:.1f} GB/s.\n", title,
                          s.cases.blocks, sdma::size_text(s.cases.large), large);
  for (const auto& c : s.columns) {
    text += fmt::format("{}, {} engine{}: {}, {}.", name(c.way), c.engines, c.engines == 1 ? "" : "s",
                        reached(s, c, direction, large / 2, "at least half of it", "less than half of it"),
                        reached(s, c, direction, large * 0.9, "at least 90 % of it", "less than 90 % of it"));
    if (s.cases.kernel)
      text += fmt::format(" {}.", reached(s, c, direction, *s.cases.kernel, "DMA is at least as fast as the kernel",
                                          "DMA is slower than the kernel"));
    text += '\n';
  }
  return text;
}

/// One direction, as numbers.
inline sdma::json::Json to_json(const Sweep& s, std::string_view title, double Times::*direction) {
  using sdma::json::Json;
  Json columns = Json::array();
  for (const auto& c : s.columns) {
    Json rows = Json::array();
    for (std::size_t size = 0; size < s.cases.sizes.size(); ++size)
      rows.push_back({{"block_bytes", s.cases.sizes[size]},
                      {"us", c.times[size].*direction * 1e6 / static_cast<double>(s.cases.blocks)},
                      {"gb_per_s", rate(s, c, size, direction)}});
    columns.push_back({{"way", name(c.way)}, {"engines", c.engines}, {"rows", std::move(rows)}});
  }
  Json out{{"direction", title}, {"columns", std::move(columns)}};
  if (s.cases.sweeps()) out["large_gb_per_s"] = static_cast<double>(s.cases.large) / (s.large.*direction) / 1e9;
  return out;
}

}  // namespace collectives::kv
