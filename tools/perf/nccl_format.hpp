// SPDX-License-Identifier: MIT
#pragma once
// The table as nccl-tests prints it from version 2.13 on, for scripts that parse it: 13 columns, and a footer.
//
// #                                                              out-of-place                       in-place
// #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
// #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
//        65536          8192     uint8    none      -1      N/A     N/A     N/A    N/A    41.20    1.59    1.39      0
// # Out of bounds values : 0 OK
// # Avg bus bandwidth    : 1.39
//
// A collective here is either in place or out of place. The half that was not performed is N/A, and so is what was not
// verified: the footer says OK only if every row was. Pure functions; lines end with newlines.
#include "point.hpp"

#include <span>
#include <string>

namespace collectives::perf::nccl_format {

/// `remarks`: further '#' lines.
std::string header(const Settings&, std::string_view device, std::string_view remarks);
std::string row(const Settings&, const Point&);
std::string footer(std::span<const Point>);

}  // namespace collectives::perf::nccl_format
