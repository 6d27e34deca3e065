// SPDX-License-Identifier: MIT
#pragma once
// The conclusions of a comparison with another library, one for each size.
//
//   # Against NCCL, by medians; a tie: the middle halves of both ways' rounds overlap
//   #    size  ours            us  theirs          us  theirs/ours
//   #      1K  b2b+pl       11.20  nccl         20.10         1.79
//   #    256K  pcpy+pl      19.60  nccl         21.90         1.12  tie
//
// Ours is the way with the smallest median, without auto; theirs,
// the mode with the smallest. Pure functions; any thread. No errors.
#include "point.hpp"

#include <string>

namespace collectives::perf {

struct Comparison {
  std::uint64_t bytes{};
  Way ours{}, theirs{};
  double ours_us{}, theirs_us{};  ///< medians
  bool tie{};                     ///< from the lower to the upper quartile, the times overlap
};

/// Of the sizes at which both were measured.
std::vector<Comparison> compared(std::span<const Point>);
/// '#' lines; "" if no rival was measured.
std::string against(std::span<const Point>);

}  // namespace collectives::perf
