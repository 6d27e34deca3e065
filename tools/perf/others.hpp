// SPDX-License-Identifier: MIT
#pragma once
// Times of others, beside those of a sweep: what they have published, and what the user brings in a file.
//
//   auto rows = elsewhere_of(*read_measurements("share/published/rccl.csv"), settings);           // --published
//   puts(elsewhere_text(rows).c_str());
//   # Measured elsewhere, on MI355X; not modelled, and not measured here:
//   #      8M      45.30 us     161.99 GB/s busbw  RCCL by graph replay; ROCm/mori docs/...
//
// A line of such a table belongs to the collective if it is a time, its schedule's file has the collective's name, such
// as mori/all_gather.sdma, and the schedule has as many GPUs. The size is that of the largest buffer of a GPU, as
// nccl-tests counts. A table without such lines gives none.
//
//   size,time_us          --against=FILE: one line for each size; sizes as in -b; lines with '#' in front, and empty
//   64K,21.5              ones, are ignored
//   1M,48
//
//   auto b = brought(text, "rccl.csv");
//   if (auto us = b->at(256 << 10)) ...                // between the two; nothing below 64K and above 1M
//
// Between two sizes, the logarithm of the time is interpolated over the logarithm of the size: both a constant latency
// and a constant rate are straight lines there. Outside, a time is not known, and never guessed.
//
// Pure; any thread may call. Errors: a Diagnostic names the file, the line and what to write there.
#include "point.hpp"
#include "sdma/simulate/measurements.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collectives::perf {

struct Elsewhere {
  std::uint64_t bytes{};
  double us{}, busbw{};
  std::string machine{}, includes{}, source{};
};
std::vector<Elsewhere> elsewhere_of(const sdma::Measurements&, const Settings&);
/// '#' lines, by machine; "" if there are none.
std::string elsewhere_text(std::span<const Elsewhere>);

struct Brought {
  std::string file{};
  std::vector<std::pair<std::uint64_t, double>> us{};  ///< bytes and microseconds, by size; at least one
  std::optional<double> at(std::uint64_t bytes) const;
  /// '#' lines for the header: what the file has, and how it is read between two sizes.
  std::string remark() const;
};
sdma::Result<Brought, sdma::Diagnostic> brought(std::string_view text, std::string file);

}  // namespace collectives::perf
