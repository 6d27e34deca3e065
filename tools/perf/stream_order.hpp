// SPDX-License-Identifier: MIT
#pragma once
// What an iteration of a kernel and an all-gather between two NVIDIA GPUs costs in the order of streams, in each way.
//
//   const auto times = time_streams({.sizes = {64 << 10}});      // stream_order.cpp explains the ways
//   times.rows[0].us[2]                                          // of times.ways[2]; nothing: not measured
//
// Starts two threads, and ends with them. Errors end the verb (must.hpp).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collectives::perf {

struct StreamOptions {
  std::vector<std::uint64_t> sizes{};  ///< bytes of a GPU's part
  std::uint32_t iterations = 100;      ///< of a run, a multiple of `graph`
  std::uint32_t graph = 20;            ///< iterations of a graph
  std::uint32_t runs = 7;
  bool nccl = false;
};

struct StreamTimes {
  struct Row {
    std::uint64_t bytes{};
    bool graphs{};                            ///< else one by one
    std::vector<std::optional<double>> us{};  ///< of an iteration, by way
  };
  std::vector<std::string> ways{};
  std::vector<Row> rows{};
};
StreamTimes time_streams(const StreamOptions&);

}  // namespace collectives::perf
