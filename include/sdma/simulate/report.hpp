// SPDX-License-Identifier: MIT
#pragma once
// The result of a simulation as text for people and as JSON for programs.
//
//   fputs(to_table(*t, &*s).c_str(), stdout);      // time by phase, utilisation, bottleneck, sensitivity
//   fputs(explain(*t, *s).c_str(), stdout);       // what each phase depends on
//   save_file("run.json", to_json(*t));
//
// For pictures, timeline_svg (trace/write.hpp) draws what SimulateOptions::recorder has recorded, and curves_svg
// (draw/curves.hpp) draws times over sizes. The functions are pure and allocate; any thread may call them. No errors.
#include "sdma/simulate/simulate.hpp"

namespace sdma::inline v0 {

/// Ends with a newline. The table has the uncertainty, and what it depends on, only if a Sensitivity is given.
std::string to_table(const Simulation&, const Sensitivity* = nullptr);
/// Per phase of the critical path, the parameters that it depends on most: by how much the phase and the time grow if
/// the parameter grows by one percent. Phases that take no time are left out. Ends with a newline.
std::string explain(const Simulation&, const Sensitivity&);
/// {"ns":.., "uncertainty_ns":.., "phases":{..}, "path":[..], "busy":[..], "sensitivity":[..]}
std::string to_json(const Simulation&, const Sensitivity* = nullptr);

/// What it means that this parameter's fit ended at a bound: one sentence, without a full stop.
std::string bound_text(Cost);

/// "1.6 us", "430 ns", "2.85 ms".
std::string time_text(double ns);

}  // namespace sdma::inline v0
