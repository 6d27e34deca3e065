// SPDX-License-Identifier: MIT
#pragma once
// The conclusions of a sweep: speed-ups over pcpy, the best way by size, and how it compares with another library.
//
//   # Speed-up over pcpy, by medians
//   #   size   pcpy+pl     bcst  bcst+pl      b2b   b2b+pl   best
//   #     1K      2.87     1.59     3.67     2.58     4.10   b2b+pl
//
//   # Best by size (3 % is a tie)           over pcpy
//   #     1K to  128K  b2b+pl                 4.10 to 4.58
//
//   # Against NCCL, by medians; a tie: the middle halves of both ways' rounds overlap
//   #    size  ours            us  theirs          us  theirs/ours
//   #      1K  b2b+pl       11.20  nccl         20.10         1.79
//   #    256K  pcpy+pl      19.60  nccl         21.90         1.12  tie
//
// A range continues while its way is within kTie of the best, so that noise does not split it, or while the model does
// not know which of both is faster (Point::ties; the column `best` lists those, too). auto is compared, but is
// never the best, because it is one of the others. These are pure functions; any thread may call them. No errors.
#include "point.hpp"

#include <string>

namespace collectives::perf {

inline constexpr double kTie = 1.03;

struct Range {
  std::uint64_t least{}, most{};  ///< measured sizes, both inclusive
  Way way{};
  std::optional<double> least_speed_up{}, most_speed_up{};  ///< over pcpy, if that was measured
};

/// The fastest point at this size; null if there is none.
const Point* fastest(std::span<const Point>, std::uint64_t bytes, bool prelaunch);

/// Ranges in the order of sizes. `prelaunch`: include ways with prelaunch. Empty if no way is left.
std::vector<Range> best(std::span<const Point>, bool prelaunch, double tie = kTie);

/// True if the times say which way is best on a GPU: those of software engines do not.
bool comparable(const Settings&) noexcept;

/// '#' lines; "" if there is only one way. If the times are not comparable, one line says so.
std::string summary(std::span<const Point>, bool comparable = true);

/// Ours is the way with the smallest median, without auto; theirs, the mode with the smallest.
struct Comparison {
  std::uint64_t bytes{};
  Way ours{}, theirs{};
  double ours_us{}, theirs_us{};  ///< medians
  bool tie{};                     ///< from the lower to the upper quartile, the times overlap
};

/// '#' lines for each alternative of the machine that changes a way's time, and where it changes it the most; "" if
/// nothing was simulated with intervals, or if none does.
std::string rests_on(std::span<const Point>);

/// Only sizes at which both were measured count.
std::vector<Comparison> compared(std::span<const Point>);
/// '#' lines; "" if no rival was measured.
std::string against(std::span<const Point>);

}  // namespace collectives::perf
