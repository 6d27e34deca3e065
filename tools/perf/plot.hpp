// SPDX-License-Identifier: MIT
#pragma once
// Draws the curves of a sweep (draw/curves.hpp).
//
//   speed-up over pcpy          if pcpy and another variant were measured
//   4 |  .--------.    -- b2b+pl      both axes are logarithmic: half as fast is as far from 1 as twice as fast
//   1 |------------    -- pcpy
//     1K   16K   256K
//   bus bandwidth, GB/s         always
//
// Each variant has one colour; curves with prelaunch are dashed. What was measured elsewhere has curves of its own in
// the second plot. The function is pure, and returns "" if there are no points.
#include "elsewhere.hpp"

#include <string>
#include <string_view>

namespace collectives::perf {

std::string plot_svg(const Settings&, std::string_view device, std::span<const Point>, std::span<const Elsewhere> = {});

}  // namespace collectives::perf
