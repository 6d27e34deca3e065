// SPDX-License-Identifier: MIT
#pragma once
// Tests a fit on data that it has not seen: leaves a part of a table out, fits to the rest, and predicts that part.
//
//   auto m = read_measurements("share/published/dma-latte.csv");
//   auto parts = held_out(*m, *mi300x_machine(), m->options);
//   for (const auto& p : *parts)
//     printf("%s: %zu cells, mean error %.1f %%\n", p.name.c_str(), p.cells.size(), 100 * p.mean_error());
//
// Each part is left out once:
//
//   column    ratios of one schedule with one set of settings, apart from those that its baseline has, too: a column of
//             a table in which each size is a row. A column of shares is one phase
//   half,     rows that follow one another: the rows of ratios, in the order
//             of the table, are cut into two and into four blocks, and so
//   quarter   are those of shares. Tables go from small sizes to large
//             ones, so most of what is left out lies beyond what remains
//   source    where lines of another source have the same kind: nothing else could fit them
//
// Lines with weight 0 are never fitted to; `unseen` is the part that has them, predicted by the fit to all others.
//
// Costs: a fit for each part, which begins at the values of the fit to all.
// Thread-safety, errors: those of fit.hpp; a fit that a limit ends is an error, too.
#include "sdma/simulate/measurements.hpp"

#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Half of the 68 % interval of a machine's prediction of an observation, in its unit; 0 for a share.
double half_interval(const Observation&, const MachineDescription&);

/// One part of a table that was left out of a fit, and predicted by that fit.
struct HeldOut {
  /// Which lines were left out. `unseen`: those of weight 0; `column`, `half`, `quarter` and `source`: as above.
  enum class Kind : std::uint8_t { unseen, column, half, quarter, source };
  /// One observation that was held out.
  struct Cell {
    std::size_t observation{};     ///< index into Measurements::observations
    Fit::Prediction prediction{};  ///< by a fit that has not seen it
    double spread{};               ///< half of the 68 % interval that this fit's machine gives it; 0 for a share
  };
  Kind kind{};                   ///< how the observations were chosen
  std::string name{};            ///< "column all_gather_bcst.sdma prelaunch=1"
  std::vector<Cell> cells{};     ///< those that were held out
  MachineDescription machine{};  ///< that was fitted to the rest
  /// The mean of |error| over the cells: 0.09 is 9 %. Not a number if there are none.
  double mean_error() const noexcept;
};
/// "lines that are never fitted to", "columns", "halves", ...
std::string_view name(HeldOut::Kind) noexcept;

/// `options`: those of the fits. `initial`: the machine whose other parameters are kept.
Result<std::vector<HeldOut>, std::vector<Diagnostic>> held_out(const Measurements&, const MachineDescription& initial,
                                                               const FitOptions& options);

/// How far predictions are off, over ratios and times or over shares.
struct HeldOutErrors {
  std::size_t cells{}, rows{};  ///< how many were predicted, and in how many rows of the table
  double mean{}, worst{};       ///< of |error|: 0.09 is 9 %
  double after_factor{};  ///< the mean after the best common factor of each row with several cells; 0: there is none
  double inside_one{}, inside_two{};  ///< fractions of the cells that lie inside their interval, and inside twice that
  double inside_one_deviation{};      ///< the standard deviation of the former, if rows are drawn anew
  /// Rows with all their ratios: how many there are, and how often the best variant is right.
  std::size_t compared{}, best{};
};
/// Over the cells of several parts; each cell may be in one. `shares`: of shares, otherwise of times and ratios.
HeldOutErrors errors_of(const Measurements&, std::span<const HeldOut* const>, bool shares);

}}  // namespace sdma::v0_3
