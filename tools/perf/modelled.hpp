// SPDX-License-Identifier: MIT
#pragma once
// Measures in the simulator instead of on a device: no engine runs, and a machine description gives the time of each
// schedule.
//
//   const auto machine = mi300x_machine();
//   auto p = modelled(settings, default_table(), *machine, {Variant::b2b, true}, 64 << 10, true);  // not verified
//   auto rows = tuned(*machine, settings, [](std::size_t done, std::size_t of) { return !interrupted; });
//   puts(to_text(*rows, "simulated: 8 x MI300X, SPX").c_str());                              // parse_table reads this
//
// For each collective and number of GPUs, with and without prelaunch, a table has the best variant by size: the one
// with the shortest simulated time. Numbers of GPUs with equal results share a line. Sizes above the largest use the
// result of the largest.
//
// The results are deterministic. Absolute times are only as certain as the machine's parameters. Errors: Diagnostics of
// plan and simulate.
#include "collectives/table.hpp"
#include "point.hpp"
#include "sdma/simulate/machine.hpp"

#include <functional>
#include <string>

namespace collectives::perf {

/// The Point of one size and way, simulated and not verified. `intervals`: also how certain the time is.
sdma::Result<Point, std::vector<sdma::Diagnostic>> modelled(const Settings&, const Table&,
                                                            const sdma::MachineDescription&, const Way&,
                                                            std::uint64_t bytes, bool intervals = false);

/// Compares points with intervals of one size: their speed-ups over pcpy, and the ties of the fastest ones. Only ways
/// that take less than half as long again can be ties.
void compare(const sdma::MachineDescription&, std::span<Point> of_one_size);

/// The schedule of one size and way.
sdma::Result<sdma::Schedule, std::vector<sdma::Diagnostic>> schedule_of_way(const Settings&, const Table&, const Way&,
                                                                            std::uint64_t bytes);

/// Rows of one collective: `points` for one number of GPUs, all with or all without prelaunch. A row goes on while its
/// variant's time is at most `tie` times the shortest.
Table rows_of(const Options&, std::span<const Point> points, double tie = 1);
/// Rows of what a sweep has measured or simulated: first with prelaunch, then without. Only variants that a table may
/// name count; times within kTie are equal. Empty if there are none.
Table rows_of_sweep(const Options&, std::span<const Point> points);
/// Merges adjacent rows whose numbers of GPUs differ by one.
Table merged(const Table&);
/// The text of a table, with '#' lines that name its source.
std::string to_text(const Table&, std::string_view source);

/// Everything that Settings::tune requests. `go_on` is called before each size; if that is false, the result is empty.
sdma::Result<Table, std::vector<sdma::Diagnostic>> tuned(const sdma::MachineDescription&, const Settings&,
                                                         const std::function<bool(std::size_t, std::size_t)>& go_on);

}  // namespace collectives::perf
