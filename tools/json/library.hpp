// SPDX-License-Identifier: MIT
#pragma once
// The results whose JSON the library writes itself, as values: the same keys as in the texts of the library's to_json.
//
//   const Json j = json::of(*simulate(s, machine));
//   j["ns"]
#include "json.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/trace/compare.hpp"
#include "sdma/trace/trace.hpp"

#include <vector>

namespace sdma::json {

/// `findings` has the expectations that fail; the library's text leaves them out.
Json of(const Simulation&, const Sensitivity* = nullptr);
Json of(const MachineDescription&);
Json of(const Topology&);
Json of(const doctor::Diagnosis&);
/// `other`: the key of the second trace's values, "simulated" or "other".
Json of(const trace::Comparison&, std::string_view other = "simulated");
/// The lines of a recording: header, lanes, texts, ranges and events.
std::vector<Json> lines_of(const trace::Trace&);
/// The packets of a stream, as `sdma dis --json` prints them.
std::vector<Json> packets_of(std::span<const std::uint32_t>, std::uint64_t base = 0, Generation = kDefaultGeneration);

}  // namespace sdma::json
