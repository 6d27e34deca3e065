// SPDX-License-Identifier: MIT
#pragma once
// The answer of `sdma simulate --sweep`: the time of each schedule at each value of one parameter, or of two.
//
//   auto r = json::swept({.files = {{"a.sdma", text}}, .machine = *mi300x_machine(), .axes = {axis}});
//   if (!r) for (const auto& d : r.error().all) puts(to_string(d).c_str());
//   json::of(*r, machine)["points"][0]["ns"]       one time per file; "uncertainty_ns" beside it
//
// Values that a file or the machine refuses have no row; Swept::refused says why. Errors: every value is refused, for
// which all Diagnostics of the first one are the reason.
#include "draw/curves.hpp"
#include "json.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/sweep.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sdma::json {

struct SweepFile {
  std::string path{};  ///< "-": standard input; files that the schedule names are beside it
  std::string text{};
};
struct SweepInput {
  std::vector<SweepFile> files{};
  ParseOptions parse{};
  /// How a file is read with the values of a row; empty: as parse_schedule reads it.
  std::function<Result<Schedule, std::vector<Diagnostic>>(const SweepFile&, const ParseOptions&)> read{};
  MachineDescription machine{};
  std::vector<SweepAxis> axes{};  ///< one or two
  bool intervals = true;          ///< false: times alone, for schedules that take long
  /// Called after each simulation of a row; false ends the sweep after the rows that are complete.
  std::function<bool()> proceed{};
};

struct SweepError {
  enum class Kind : std::uint8_t {
    request,   ///< the files do not fit together, or the machine has no such parameter
    schedule,  ///< the text of a schedule has errors, or the machine cannot begin it
    run,       ///< a schedule cannot be simulated
  };
  Kind kind{};
  std::vector<Diagnostic> all{};
};

struct Swept {
  /// The times of the files at these values, one per axis.
  struct Row {
    std::vector<double> values{};
    std::vector<SpeedUp> files{};  ///< its time, and how many times as fast it is as the first
  };
  std::vector<SweepAxis> axes{};
  std::vector<std::string> names{};  ///< of the files, without folder and suffix if they then differ
  std::vector<Row> rows{};
  std::vector<std::string> notes{};  ///< what caps a parameter that changes no time; alternatives of the machine
  bool intervals = true;             ///< false: the uncertainties are not known
  std::string machine{};             ///< its name
  bool complete = true;              ///< false: rows are missing, so `notes` says nothing about caps
  /// Why values have no row; each names its values. With the kind of the first.
  SweepError refused{};
};

Result<Swept, SweepError> swept(const SweepInput&);

/// The speed-ups over the first file, or the times of a single one, for curves_svg.
Curves curves(const Swept&);

/// param, files, points; `defaults`, as in a simulation; notes, if there are any; and `complete`, if it is false. A
/// point's value is a list if there are two parameters. Without intervals, points have times alone.
Json of(const Swept&, const MachineDescription&);

}  // namespace sdma::json
