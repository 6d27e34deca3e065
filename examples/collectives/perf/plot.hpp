#pragma once
// The curves of a sweep as a picture (sdma/draw/curves.hpp).
//
//   speed-up over pcpy          where pcpy was measured, and something else
//   4 |  .--------.    -- b2b+pl      both axes by logarithm: half as fast is as far from 1 as twice as fast
//   1 |------------    -- pcpy
//     1K   16K   256K
//   bus bandwidth, GB/s         always
//
// A colour a variant; dashed with prelaunch. Pure; "" without points.
#include "point.hpp"

#include <string>
#include <string_view>

namespace collectives::perf {

std::string plot_svg(const Settings&, std::string_view device, std::span<const Point>);

}  // namespace collectives::perf
