// SPDX-License-Identifier: MIT
#pragma once
// How a picture is drawn: what --title and --size of a verb say (add_figure in shared_options.hpp).
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace sdma::tool {

struct FigureOptions {
  std::string title{};                              ///< above it; "": what it is of
  std::optional<std::pair<double, double>> size{};  ///< width and height in pixels; nothing: that of a column of text
  bool given() const noexcept { return !title.empty() || size.has_value(); }
  /// Of a Curves or a TimelineOptions.
  template <class Picture> void apply(Picture& p) const {
    if (!title.empty()) p.title = title;
    if (size) std::tie(p.width, p.height) = *size;
  }
};

}  // namespace sdma::tool
