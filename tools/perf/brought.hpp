// SPDX-License-Identifier: MIT
#pragma once
// Times that the user brings, for --against=FILE: of another library on his own machine, at the sizes that he has.
//
//   size,time_us          one line for each size; sizes as in -b; lines with '#' in front, and empty ones, are ignored
//   64K,21.5
//   1M,48
//
//   auto b = brought(text, "rccl.csv");
//   if (auto us = b->at(256 << 10)) ...                // between the two; nothing below 64K and above 1M
//
// Between two sizes, the logarithm of the time is interpolated over the logarithm of the size: both a constant latency
// and a constant rate are straight lines there. Outside, a time is not known, and never guessed.
//
// Pure; any thread may call. Errors: a Diagnostic names the file, the line and what to write there.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collectives::perf {

struct Brought {
  std::string file{};
  std::vector<std::pair<std::uint64_t, double>> us{};  ///< bytes and microseconds, by size; at least one
  std::optional<double> at(std::uint64_t bytes) const;
  /// '#' lines for the header: what the file has, and how it is read between two sizes.
  std::string remark() const;
};
sdma::Result<Brought, sdma::Diagnostic> brought(std::string_view text, std::string file);

}  // namespace collectives::perf
