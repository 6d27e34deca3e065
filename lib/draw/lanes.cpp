// SPDX-License-Identifier: MIT
#include "lanes.hpp"

#include "axis.hpp"
#include "svg.hpp"

namespace sdma::inline v0 {
namespace {

using namespace detail;

// In pixels.
constexpr double kLaneLeft = 190, kLaneTop = 44, kRow = 7, kGap = 5, kLanePlot = 1190, kLaneRight = 20, kLaneName = 11,
                 kKey = 24;
constexpr std::string_view kGrey = "fill=\"#555555\"";

struct Cell {
  double top{}, height{};  ///< no height: not drawn
};

void draw_bars(Svg& svg, const Lanes& l, const Lanes::Lane& lane, const Axis& x, double top) {
  for (const auto& b : lane.bars) {
    if (b.end < l.begin || b.begin > l.end) continue;
    const auto from = x.at(std::max(b.begin, l.begin)), to = x.at(std::min(b.end, l.end));
    svg.box(from, top + static_cast<double>(b.row) * kRow, std::max(0.4, to - from), kRow - 1, b.colour, b.title);
  }
}

void draw_arrow(Svg& svg, double x1, double y1, double x2, double y2) {
  const auto middle = (y1 + y2) / 2;
  svg.path(
      fmt::format("M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x1, y1, x1, middle, x2, middle, x2, y2),
      "stroke=\"#c03028\" stroke-opacity=\"0.35\" stroke-width=\"0.8\"");
  svg.circle(x2, y2, 1.8, "#c03028");
}

void draw_keys(Svg& svg, const Lanes& l, double x, double y) {
  if (!l.note.empty()) svg.text(x, y + 24, l.note);
  for (const auto& k : l.keys) {
    svg.box(x, y, 10, 8, k.colour);
    svg.text(x + 14, y + 8, k.name);
    x += std::max(100.0, text_width(k.name) + kKey);
  }
  if (!l.arrows_are.empty()) svg.text(x, y + 8, "red: " + l.arrows_are, "start", "fill=\"#c03028\"");
}

}  // namespace

std::string lanes_svg(const Lanes& l) {
  std::vector<Cell> places;
  double left = kLaneLeft, bottom = kLaneTop + 14;
  for (const auto& lane : l.lanes) {
    std::size_t rows = 0;
    for (const auto& b : lane.bars) rows = std::max(rows, b.row + 1);
    places.push_back({bottom, rows == 0 ? 0 : std::max(10.0, static_cast<double>(rows) * kRow)});
    if (rows == 0) continue;
    bottom += places.back().height + kGap;
    left = std::max(left, text_width(lane.name, kLaneName) + 20);
  }
  const auto right = left + kLanePlot;
  const Axis x(Axis::Scale::linear, l.begin, l.end, left, right);
  Svg svg(std::max(right + kLaneRight, title_width(l.title) + 24), std::max(bottom + 50, 120.0));
  svg.title(20, l.title);
  for (const auto us : x.ticks()) {
    svg.line(x.at(us), kLaneTop, x.at(us), bottom, Svg::kGrid);
    svg.text(x.at(us), kLaneTop - 4, fmt::format("{:.6g}", us), "middle", kGrey);
  }
  svg.text(left - 36, kLaneTop - 4, "us", "end", kGrey);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [top, height] = places[i];
    if (height == 0) continue;
    svg.text(left - 8, top + 9, l.lanes[i].name, "end");
    svg.line(left, top - kGap / 2, right, top - kGap / 2, "stroke=\"#eeeeee\"");
    draw_bars(svg, l, l.lanes[i], x, top);
  }
  const auto drawn = [&](std::size_t lane) { return lane < places.size() && places[lane].height != 0; };
  for (const auto& a : l.arrows)
    if (drawn(a.from) && drawn(a.to) && a.begin >= l.begin && a.end <= l.end)
      draw_arrow(svg, x.at(a.begin), places[a.from].top + places[a.from].height - 2, x.at(a.end),
                 places[a.to].top + (static_cast<double>(a.row) + 0.5) * kRow);
  draw_keys(svg, l, left, bottom + 16);
  return svg.close();
}

}  // namespace sdma::inline v0
