#pragma once
// The same rows out of the simulator: no engine runs, a described machine says how long each schedule takes.
//
//   const auto machine = mi300x_machine();
//   auto p = modelled(settings, default_table(), *machine, {Variant::b2b, true}, 64 << 10);     // a Point, nobody verified it
//   auto rows = tuned(*machine, settings, [](std::size_t done, std::size_t of) { return !interrupted; });
//   puts(to_text(*rows, "simulated: 8 x MI300X, SPX").c_str());                                 // what parse_table reads
//
// A table has, for each collective and number of GPUs, with and without prelaunch, the best variant by size: the least of
// the times that the model gives. Numbers of GPUs that agree are one line. What is larger than the largest size is taken as
// that.
//
// Deterministic. Absolute times are as certain as the machine's parameters. Errors: Diagnostics of plan and simulate.
#include "collectives/table.hpp"
#include "point.hpp"
#include "sdma/simulate/machine.hpp"

#include <functional>
#include <string>

namespace collectives::perf {

sdma::Result<Point, std::vector<sdma::Diagnostic>> modelled(const Settings&, const Table&,
                                                            const sdma::MachineDescription&, const Way&,
                                                            std::uint64_t bytes);

/// Rows of one collective: `points` of one number of GPUs, all with or all without prelaunch.
Table rows_of(const Options&, std::span<const Point> points);
/// Neighbours that differ in their number of GPUs, by one, become one.
Table merged(const Table&);
/// With '#' lines about where it comes from.
std::string to_text(const Table&, std::string_view source);

/// Of all that Settings::tune asks for. `go_on` is asked before each size; no: what was done until then is given up (empty).
sdma::Result<Table, std::vector<sdma::Diagnostic>> tuned(const sdma::MachineDescription&, const Settings&,
                                                         const std::function<bool(std::size_t, std::size_t)>& go_on);

}  // namespace collectives::perf
