// SPDX-License-Identifier: MIT
#pragma once
// What others have published of the same collective, to stand beside a sweep: as lines below its table, and as curves.
//
//   auto rows = elsewhere_of(*read_measurements("share/published/rccl.csv"), settings);
//   puts(elsewhere_text(rows).c_str());
//   # Measured elsewhere, on MI355X; not modelled, and not measured here:
//   #      8M      45.30 us     161.99 GB/s busbw  RCCL by graph replay; ROCm/mori docs/...
//
// A line of the table belongs to the collective if it is a time, its schedule's file has the collective's name, such as
// mori/all_gather.sdma, and the schedule has as many GPUs. The size is that of the largest buffer of a GPU, as
// nccl-tests counts. Pure functions; any thread may call them. No errors: a table without such lines gives none.
#include "point.hpp"
#include "sdma/simulate/measurements.hpp"

#include <span>
#include <string>
#include <string_view>
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
/// A JSON array.
std::string elsewhere_json(std::span<const Elsewhere>);

/// Text as JSON writes it: in quotes, with its own quotes escaped.
std::string json_text(std::string_view);

}  // namespace collectives::perf
