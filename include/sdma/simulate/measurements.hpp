// SPDX-License-Identifier: MIT
#pragma once
// Published measurements: a table with one line per cell, and the schedules that were measured as files next to it.
//
//   auto m = read_measurements("share/published/dma-latte.csv");
//   if (!m) for (const auto& d : m.error()) puts(to_string(d).c_str());
//   auto f = fit(m->observations, *mi300x_machine(), m->options);              // fit.hpp
//
//   # Comments, with the origin of the table.
//   #: power 4
//   #: free engine.poll_ns 3000 500 20000 what the triggered variants take
//   schedule,settings,what,baseline,value,spread,source
//   dma-latte/b2b.sdma,N=8 chunk=8K,speed_up,dma-latte/pcpy.sdma,2.84,,"arXiv 2511.06605, figure 9"
//   dma-latte/one_copy.sdma,bytes=64K,share.sync,,27,,arXiv 2511.06605
//
// The first line that is not a comment names the columns, in any order:
//
//   schedule           a .sdma file, relative to the table
//   settings           values of its params, separated by blanks: N=8 chunk=64K
//   what               time_us, time_ns: the time of the schedule's last round
//                      speed_up: the baseline's time / the schedule's time
//                      share.control, share.schedule, share.copy, share.sync, share.compute: percent of the time
//   value              the measured value
//   source             where it was published. Required in each line
//   spread             standard deviation of the value, in its unit. Empty: not known
//   baseline           for speed_up: a .sdma file
//   baseline_settings  its params. Empty: the schedule's settings
//   weight             of the error in a fit. Empty: 1; 0: only predicted
//   machine            what was measured, such as MI300X, for people: a table is predicted on one machine
//   includes           what lies inside the value: the host, an engine alone, ...
//   id                 for messages. Empty: schedule, settings and what
//
// The columns schedule, what, value and source are required. A field with a comma or a quote is written in double
// quotes, and a quote in it twice. A field cannot contain a newline.
//
// Settings of a fit to this table begin with "#:", so programs that skip comments can read the table as it is:
//
//   #: power P                            FitOptions::power
//   #: common C                           FitOptions::common: ratios to one baseline,
//                                         with the same settings of it, are a group
//   #: unlike U                           FitOptions::unlike
//   #: free PARAMETER START [LOW HIGH] [NOTE...]   a free parameter, the value from which
//                                                  the fit starts, its bounds, its note
//
// Each distinct pair of schedule and settings is parsed once and shared by its observations.
// Errors: all that the table has, up to 100, each with file:line, the problem and what to do; and those of a schedule
// in the table, with the line that names it. Any thread may read; nothing is shared. Allocates.
#include "sdma/simulate/fit.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A table of measurements.
struct Measurements {
  /// The line of an observation, as the table has it.
  struct Row {
    /// The columns of that name, as text.
    std::string schedule{}, settings{}, what{}, baseline{}, source{}, machine{}, includes{};
    std::size_t line{};  ///< its number in the file, from 1
  };
  std::vector<Observation> observations{};       ///< one for each line, in order
  std::vector<Row> rows{};                       ///< in the order of the observations
  FitOptions options{};                          ///< free parameters and power, from lines with "#:"
  std::vector<std::pair<Cost, double>> start{};  ///< the values from which a fit starts

  /// `initial` with the values of `start`: what a fit starts from. It does not depend on how `initial` was fitted.
  MachineDescription from(MachineDescription initial) const;
  /// The first observation with this schedule file, settings and what; null if there is none.
  const Observation* find(std::string_view schedule, std::string_view settings, std::string_view what) const noexcept;
};

/// How far a machine is off for each pattern that these tables have: its `judged`, in the order of CopyPattern. The
/// model_error of a pattern is what 68 % of its errors do not exceed, relative to the part in which no bytes move: of
/// the fitted cells or of the predicted ones, whichever is larger; 0 if there are less than five. Errors: those of
/// `predict`.
Result<std::vector<Judged>, std::vector<Diagnostic>> judge(std::span<const Measurements>, const MachineDescription&);

/// The text of a table with these lines, of kind time only. The schedules are not in it: write them next to it.
std::string to_csv(const Measurements&, std::string_view comment);

/// Reads the text of a schedule that a table names.
using ReadText = std::function<Result<std::string, Diagnostic>(const std::string& path)>;

/// `file`: the name of the text in errors. `read` gets the names of schedules as the table has them.
Result<Measurements, std::vector<Diagnostic>> measurements_from_csv(std::string_view text, std::string_view file,
                                                                    const ReadText& read);
/// From a file; schedules are relative to its folder.
Result<Measurements, std::vector<Diagnostic>> read_measurements(const std::string& path);

}}  // namespace sdma::v0_3
