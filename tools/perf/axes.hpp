// SPDX-License-Identifier: MIT
#pragma once
// --sweep: the whole table again for each value of a parameter of the machine, of an option of the schedules, or of a
// param of schedule files; with two sweeps, for each pair of values.
//
//   for (const auto& values : combinations(s.axes)) {
//     auto now = settings;
//     if (auto r = apply(now, machine, values); !r) ...       // machine: null on a device
//     at_text(s.axes, values)                                  // "engine.window_bytes=16K, peers_per_engine=2"
//   }
//
// A name with a dot is a parameter of the machine, one of kScheduleOptions an option, and any other a param of schedule
// files. Any thread; a schedule file is changed by one thread at a time. Errors: Diagnostics that name the sweep.
#include "modelled.hpp"

#include <string>
#include <vector>

namespace collectives::perf {

/// All values of one axis, all pairs of two; one empty combination if there is no axis.
std::vector<std::vector<double>> combinations(const std::vector<sdma::SweepAxis>&);
/// "" if there is no axis.
std::string at_text(const std::vector<sdma::SweepAxis>&, const std::vector<double>& values);
sdma::Result<void, sdma::Diagnostic> apply(Settings&, sdma::MachineDescription* machine,
                                           const std::vector<double>& values);

/// '#' lines for parameters of the machine that change no time from one value
/// to the next, with what caps them. `points`: of a whole simulated sweep.
sdma::Result<std::string, std::vector<sdma::Diagnostic>> caps(const Settings&, const Table&,
                                                              const sdma::MachineDescription&,
                                                              std::span<const Point> points);

}  // namespace collectives::perf
