#pragma once
// What a sweep says: speed-ups over pcpy, and which way is best at which sizes.
//
//   # Speed-up over pcpy, by medians
//   #   size   pcpy+pl     bcst  bcst+pl      b2b   b2b+pl   best
//   #     1K      2.87     1.59     3.67     2.58     4.10   b2b+pl
//
//   # Best by size (3 % is a tie)           over pcpy
//   #     1K to  128K  b2b+pl                 4.10 to 4.58
//
// A range goes on while its way is within kTie of the best, so that noise does not break it. auto is compared, and is never
// the best: it is one of the others. Pure functions, any thread, no errors.
#include "point.hpp"

#include <string>

namespace collectives::perf {

inline constexpr double kTie = 1.03;

struct Range {
  std::uint64_t least{}, most{};  ///< sizes that were measured, both inclusive
  Way way{};
  std::optional<double> least_speed_up{}, most_speed_up{};  ///< over pcpy, where that was measured
};

/// In the order of sizes. `prelaunch`: ways with it take part. Empty if no way does.
std::vector<Range> best(std::span<const Point>, bool prelaunch, double tie = kTie);

/// '#' lines; "" where there is but one way.
std::string summary(std::span<const Point>);

}  // namespace collectives::perf
