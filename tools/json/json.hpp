// SPDX-License-Identifier: MIT
#pragma once
// What the tool answers, as JSON: one function `of` per type of result. The program `sdma` prints these values
// with --json, and bindings for other languages return them as their own dicts and lists. share/schemas
// describes each of them.
//
//   const Json j = json::of(*simulate(s, m), m);
//   puts(json::document(j).c_str());                     // with line breaks; json::line(j) has none
//
//   of(Diagnostic)           this header      messages, on standard error or as part of an answer
//   of(Simulation), ..       this header      what the library itself writes as JSON: the same keys
//   of(CheckReport, ..)      check.hpp        a proof or a counterexample, and what it assumes
//   of(RunReport, ..)        run.hpp          expectations, queues and GPUs of a run
//   of(Explored, ..)         explore.hpp      the best candidates of a search
//   of(Swept)                sweep.hpp        the times of schedules at each value of a parameter
//   of(Fit, ..), ..          calibrate.hpp    a fit, predictions, a fit judged by what it has not seen
//
// Numbers are in the unit that the key's suffix names: _ns, _bytes, _percent, _per_s. A key that is missing does not
// apply; null is a value that is not known. Keys may be added; their names and meanings do not change (docs/json.md).
//
// Pure functions; any thread may call them. They allocate, and throw only what the allocator throws.
#include "sdma/core/diagnostic.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/simulate/lower_bound.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/trace/compare.hpp"
#include "sdma/trace/trace.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::json {

/// Keeps the order of keys.
using Json = nlohmann::ordered_json;

/// rule, severity, where, message, hint; and file, line, column, offset and excerpt, if they are known.
Json of(const Diagnostic&);
Json of(std::span<const Diagnostic>);
/// What `of` has made of a Diagnostic.
Diagnostic diagnostic(const Json&);

/// On one line, with a newline at the end. Other characters than ASCII are escaped; invalid UTF-8 becomes U+FFFD.
std::string line(const Json&);
/// With line breaks and two spaces of indentation, and a newline at the end.
std::string document(const Json&);

Json of(const Bounds&);
Json of(const Energy&);
/// `findings` has the expectations that fail, and `defaults` what was not said about the machine; the library's text
/// leaves them out.
Json of(const Simulation&, const MachineDescription&, const Sensitivity* = nullptr);
/// The bound, and how many times it the simulation takes; null if there is none, or it does not hold for this one.
Json of(const std::optional<LowerBound>&, const Simulation&);
Json of(const LowerBound&, double times);
Json of(const MachineDescription&);
Json of(const Topology&);
Json of(const doctor::Diagnosis&);
/// `other`: the key of the second trace's values, "simulated" or "other".
Json of(const trace::Comparison&, std::string_view other = "simulated");
/// The lines of a recording: header, lanes, texts, ranges and events.
std::vector<Json> lines_of(const trace::Trace&);

}  // namespace sdma::json
