// SPDX-License-Identifier: MIT
#pragma once
// The text on standard output: one row per size and way, with '#' lines around them, in the columns of nccl-tests.
//
//   #       size         count      type    variant      time    algbw    busbw  #wrong
//   #        (B)    (elements)                            (us)   (GB/s)   (GB/s)
//         65536          8192     uint8     b2b+pl     41.20     1.59     1.39       0
//
// Pure functions; lines end with newlines. A column grows if a number needs it, so that columns never touch.
#include "point.hpp"

#include <string>

namespace collectives::perf {

/// `device`: a description for people; `remarks`: further '#' lines. Ends with the names of the columns.
std::string header(const Settings&, std::string_view device, std::string_view remarks = {});
/// '#' lines about what the times mean: software, a simulation, settings without effect.
std::string cautions(const Settings&);
/// The row, and its details. `intervals`: the table has a column for half of the 68 % interval, as in a simulation.
std::string row(const Point&, std::size_t variant_width = 12, bool intervals = false);
/// '#' lines below a row: wrong data, energy, times beside a matrix product.
std::string details(const Point&);
/// "# note: ..." lines for fallbacks that are not in `said` yet, which is updated.
std::string notes(const Point&, std::vector<std::string>& said);
/// The number of wrong elements, and the average bus bandwidth.
std::string footer(std::span<const Point>);

/// The width of the column of variants: names of schedule files may be long.
std::size_t variant_width(const Settings&);
/// "auto=b2b": the way, and the variant that auto has chosen.
std::string way_text(const Point&);

/// "b2b": the variant that ran, the rival, or the file.
std::string ran_text(const Point&);

/// Of all ways but rivals.
double average_busbw(std::span<const Point>) noexcept;
std::uint64_t wrong_elements(std::span<const Point>) noexcept;

}  // namespace collectives::perf
