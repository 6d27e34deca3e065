// SPDX-License-Identifier: MIT
#pragma once
// Draws curves over sizes: SVG 1.1 without scripts or embedded fonts.
//
//   save_file("all_gather.svg", curves_svg({.title = "all-gather",
//                                           .y_label = "speed-up",
//                                           .series = {{"bcst", {{1024, 1.6}, {4096, 1.5}}}}}));
//
// A point shows its value when the pointer rests on it. Text is escaped. Points that cannot be drawn are left out:
// those with x <= 0, with a value that is not finite and, if `log_y` is set, with y <= 0. The functions are pure and
// allocate; any thread may call them. No errors.
#include "sdma/core/standard.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A picture of curves that share both axes.
struct Curves {
  /// One curve.
  struct Series {
    std::string name{};                               ///< as the legend shows it
    std::vector<std::pair<double, double>> points{};  ///< x (on a logarithmic axis), y
    bool dashed = false;                              ///< draws a dashed line
    std::string colour{};                             ///< "#d55e00"; "": the next default colour
    std::vector<std::pair<double, double>> band{};    ///< the interval of each point, lower end first; empty: none
  };
  std::string title{}, x_label{}, y_label{};  ///< of the picture and of its axes
  std::vector<Series> series{};               ///< in the order of the legend
  bool bytes = true;                          ///< x values are sizes, written as 1K, 1M
  bool log_y = false;   ///< y on a logarithmic axis: 0.5 is as far from 1 as 2 is; otherwise the axis begins at 0
  bool ratios = false;  ///< y values are ratios: a line shows where they are 1
  /// Of the picture, in pixels; 0: 680 wide, and 400 high, and the legend. It is larger where its text needs that.
  double width = 0, height = 0;
};
std::string curves_svg(const Curves&);
/// Several plots in one picture, from top to bottom. The first says how large it is.
std::string stacked_curves_svg(std::span<const Curves>);

}}  // namespace sdma::v0_3
