// SPDX-License-Identifier: MIT
#pragma once
// Draws lanes of bars over time: SVG 1.1 without scripts or embedded fonts.
//
//   Lanes l{.title = "run", .end = 12, .lanes = {{"engine 0", {{.begin = 2, .end = 9, .colour = "#3b78b5"}}}}};
//   save_file("run.svg", lanes_svg(l));
//
// The axis has the unit in which a table writes its end.
//
//   run
//          us 0    2    4    6    8    10   12
//    engine 0      [==================]
//    engine 1                [====]
//                       [=======]               the caller puts bars that overlap into different rows
//
// A bar shows its title when the pointer rests on it. Text is escaped. Bars are cut at the limits of the time axis;
// arrows that cross a limit are left out. A lane without bars is not drawn, and neither are its arrows. The function is
// pure and allocates; any thread may call it. No errors.
#include "sdma/core/standard.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

struct Lanes {
  /// One span of time in a lane.
  struct Bar {
    double begin{}, end{};          ///< in microseconds
    std::size_t row = 0;            ///< of its lane; 0 is the top row
    std::string colour{}, title{};  ///< an SVG colour; the text that a resting pointer shows
  };
  /// A lane: one or more rows of bars.
  struct Lane {
    std::string name{};       ///< shown at its left
    std::vector<Bar> bars{};  ///< in any order
    std::string heading{};    ///< a line above it: what the lanes from here on are of
  };
  /// An arrow from a moment in one lane to a moment in another.
  struct Arrow {
    std::size_t from{};   ///< an index of `lanes`
    double begin{};       ///< in microseconds
    std::size_t to{};     ///< an index of `lanes`
    double end{};         ///< in microseconds
    std::size_t row = 0;  ///< of `to`, where the arrow ends
  };
  /// One entry of the legend.
  struct Key {
    std::string name{}, colour{};  ///< what the colour means, and the colour
  };
  std::string title{};          ///< above the picture
  double begin = 0, end = 0;    ///< limits of the time axis, in microseconds
  std::vector<Lane> lanes{};    ///< from top to bottom
  std::vector<Arrow> arrows{};  ///< drawn over the bars
  std::vector<Key> keys{};      ///< the meaning of the colours
  std::string arrows_are{};     ///< the meaning of the arrows
  std::string note{};           ///< a line at the bottom
  /// Of the picture, in pixels; 0: 680 wide, and as high as its rows. It is larger where its text and rows need that.
  double width = 0, height = 0;
};
std::string lanes_svg(const Lanes&);

}}  // namespace sdma::v0_3
