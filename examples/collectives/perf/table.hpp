#pragma once
// What goes to standard output: '#' lines around a row for each size and way, in the columns of nccl-tests.
//
//   #       size         count      type    variant      time    algbw    busbw  #wrong
//   #        (B)    (elements)                            (us)   (GB/s)   (GB/s)
//         65536          8192     uint8     b2b+pl     41.20     1.59     1.39       0
//
// Pure functions; lines end with newlines. A width grows where a number needs it, so that columns never run into each other.
#include "point.hpp"

#include <string>

namespace collectives::perf {

/// `device`: what it is, for people. Ends with the names of the columns.
std::string header(const Settings&, std::string_view device);
/// The row, and a '#' line below it if its data was wrong.
std::string row(const Point&);
/// "# note: ..." of fallbacks: what was not said yet. `said` remembers.
std::string notes(const Point&, std::vector<std::string>& said);
/// How many elements were wrong, and the average bus bandwidth.
std::string footer(std::span<const Point>);

/// "auto=b2b": the way, and what auto has chosen.
std::string way_text(const Point&);

double average_busbw(std::span<const Point>) noexcept;
std::uint64_t wrong_elements(std::span<const Point>) noexcept;

}  // namespace collectives::perf
