// SPDX-License-Identifier: MIT
#pragma once
// Finds the terms of a machine's energy from joules that a device's counter has measured.
//
//   const auto table = energy_measurements(text, "energy.csv");
//   const auto f = fit_energy(*table);
//   for (const auto& p : f->predictions) printf("%s %+.1f %%\n", p.name.c_str(), 100 * p.error);
//   f->write(machine);                                           // its terms are now those of the fit
//
// The table is CSV. Its first line names the columns; '#' begins a comment.
//
//   #: source an H200, by NVML                                   what the terms' sources say
//   #: includes hbm.pj_per_byte engine.pj_per_byte               no row tells the second from the first
//   name, kind, seconds, joules, hbm.pj_per_byte, pcie.pj_per_byte, gemm
//   idle, fit, 3.1, 382, 0, 0, 0
//   d2h, fit, 3.0, 405, 153.8e9, 153.8e9, 0
//   gemm+d2h, judge, 3.0, 2070, 135e9, 135e9, 1792
//
// A row has the seconds and the joules of a GPU, and how much of each column it did: bytes of a *.pj_per_byte, seconds
// of a *.watts. A column with another name has joules of its own for each unit; no machine gets these. The idle power
// belongs to every row: gpu.idle_watts times its seconds. Rows of the kind `fit` are fitted to: least squares of the
// relative errors, no value below zero. Rows of the kind `judge` are only predicted.
//
// A value's bounds are two standard deviations of the fit. Columns that no row tells apart are an error: their sum is
// one column, and `includes` says so.
//
// Pure functions that allocate. Errors: Diagnostics with the line of the table.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/simulate/machine.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Joules that were measured, and what was done for them.
struct EnergyMeasurements {
  /// What a GPU did for some time.
  struct Row {
    std::string name{};             ///< "gemm+d2h"
    bool judged{};                  ///< it is predicted, and not fitted to
    double seconds{};               ///< how long
    double joules{};                ///< by the counter
    std::vector<double> amounts{};  ///< of each column: bytes, seconds, or times
  };
  std::vector<std::string> columns{};               ///< the idle power first
  std::vector<Row> rows{};                          ///< in the order of the table
  std::string source{};                             ///< what was measured, and how
  std::vector<std::pair<Power, Power>> includes{};  ///< the second is a part of the first
};
/// Reads a table; `file` names it in messages.
Result<EnergyMeasurements, std::vector<Diagnostic>> energy_measurements(std::string_view text, std::string_view file);
/// The table of these, which energy_measurements reads again.
std::string to_csv(const EnergyMeasurements&);

/// What the joules of a table say.
struct EnergyFit {
  /// What one unit of a column takes.
  struct Value {
    std::string column{};  ///< its name
    Bounds value{};        ///< in the term's unit; of another column, joules
  };
  /// A row, and what the values predict for it.
  struct Prediction {
    std::string name{};  ///< of the row
    bool judged{};       ///< it was not fitted to
    double watts{};      ///< measured
    double predicted{};  ///< watts
    double error{};      ///< relative, of the measured
  };
  std::vector<Value> values{};                      ///< of each column
  std::vector<Prediction> predictions{};            ///< of each row
  std::string source{};                             ///< of the terms
  std::vector<std::pair<Power, Power>> includes{};  ///< as in the table
  /// The largest error, without sign, of rows that were judged, or of those that were fitted to.
  double worst(bool judged) const noexcept;
  /// Gives the machine the terms; the board's figures that they replace are gone.
  void write(MachineDescription&) const;
};
/// Fits the terms.
Result<EnergyFit, std::vector<Diagnostic>> fit_energy(const EnergyMeasurements&);

}}  // namespace sdma::v0_3
