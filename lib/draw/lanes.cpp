// SPDX-License-Identifier: MIT
#include "lanes.hpp"

#include "../core/time_unit.hpp"
#include "axis.hpp"
#include "svg.hpp"

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

// In pixels.
constexpr double kLaneLeft = 120, kLaneTop = 46, kRow = 7, kLeastRow = 3, kMostRow = 40, kGap = 5, kLaneRight = 20,
                 kLeastPlot = 440, kHeading = 20;
constexpr std::string_view kGrey = "fill=\"#555555\"";

struct Cell {
  double top{}, height{};  ///< no height: not drawn
};
/// Where the lanes are, from top to bottom.
struct Places {
  std::vector<Cell> lanes{};
  double bottom{};
};

Places arranged(const Lanes& l, double top, double row) {
  Places p{.bottom = top};
  for (const auto& lane : l.lanes) {
    std::size_t rows = 0;
    for (const auto& b : lane.bars) rows = std::max(rows, b.row + 1);
    if (rows != 0 && !lane.heading.empty()) p.bottom += kHeading;
    p.lanes.push_back({p.bottom, rows == 0 ? 0 : std::max(kFont, static_cast<double>(rows) * row)});
    if (rows != 0) p.bottom += p.lanes.back().height + kGap;
  }
  return p;
}

/// The height of a row with which the lanes end at `bottom`, or the nearest that can be read.
double row_to(const Lanes& l, double top, double bottom) {
  double low = kLeastRow, high = kMostRow;
  while (high - low > 0.01) (arranged(l, top, (low + high) / 2).bottom > bottom ? high : low) = (low + high) / 2;
  return low;
}

void draw_bars(Svg& svg, const Lanes& l, const Lanes::Lane& lane, const Axis& x, double top, double row) {
  for (const auto& b : lane.bars) {
    if (b.end < l.begin || b.begin > l.end) continue;
    const auto from = x.at(std::max(b.begin, l.begin)), to = x.at(std::min(b.end, l.end));
    svg.box(from, top + static_cast<double>(b.row) * row, std::max(0.4, to - from), row - 1, b.colour, b.title);
  }
}

void draw_arrow(Svg& svg, double x1, double y1, double x2, double y2) {
  const auto middle = (y1 + y2) / 2;
  svg.path(
      fmt::format("M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x1, y1, x1, middle, x2, middle, x2, y2),
      "stroke=\"#c03028\" stroke-opacity=\"0.35\" stroke-width=\"0.8\"");
  svg.circle(x2, y2, 1.8, "#c03028");
}

/// The legend, in lines up to `right`; only measured without a picture. Returns its height.
double draw_keys(Svg* svg, const Lanes& l, double left, double right, double y) {
  constexpr double kLine = 20, kBox = 14, kBetween = 18;
  const auto top = y;
  double x = left;
  const auto entry = [&](std::string_view text, const auto& draw) {
    const auto width = text_width(text) + kBox;
    if (x > left && x + width > right) x = left, y += kLine;
    if (svg) draw();
    x += width + kBetween;
  };
  for (const auto& k : l.keys)
    entry(k.name, [&] { svg->box(x, y + 2, 10, 8, k.colour), svg->text(x + kBox, y + 11, k.name); });
  const auto arrows = l.arrows_are.empty() ? "" : "red: " + l.arrows_are;
  if (!arrows.empty()) entry(arrows, [&] { svg->text(x, y + 11, arrows, "start", "fill=\"#c03028\""); });
  if (!l.note.empty() && svg) svg->text(left, y + kLine + 11, l.note);
  return y - top + kLine * (l.note.empty() ? 1 : 2);
}

}  // namespace

std::string lanes_svg(const Lanes& l) {
  double left = kLaneLeft;
  for (const auto& lane : l.lanes)
    if (!lane.bars.empty()) left = std::max(left, text_width(lane.name) + 20);
  auto right = l.width > 0 ? std::max(l.width - kLaneRight, left + kLeastPlot / 4)
                           : std::max(kColumn - kLaneRight, left + kLeastPlot);
  const auto title = title_lines(l.title, right - 24);
  for (const auto& line : title) right = std::max(right, 12 + title_width(line));
  const auto head = kLaneTop + kTitleLine * static_cast<double>(title.size() - 1);
  const auto below = 24 + draw_keys(nullptr, l, kLaneRight, right, 0);
  const auto row = l.height > 0 ? row_to(l, head + 14, l.height - below) : kRow;
  const auto [places, bottom] = arranged(l, head + 14, row);
  const Axis x(Axis::Scale::linear, l.begin, l.end, left, right);
  Svg svg(right + kLaneRight, std::max({bottom + below, 120.0, l.height}));
  svg.title(20, title);
  const auto unit = time_unit(l.end * 1e3);
  double free = left;
  for (const auto us : x.ticks()) {
    const auto number = fmt::format("{:.6g}", us * 1e3 / unit.ns);
    const auto half = text_width(number) / 2;
    svg.line(x.at(us), head, x.at(us), bottom, Svg::kGrid);
    if (us != l.begin && x.at(us) - half < free) continue;
    svg.text(x.at(us), head - 4, number, "middle", kGrey);
    free = x.at(us) + half + 8;
  }
  svg.text(left - 30, head - 4, unit.name, "end", kGrey);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [top, height] = places[i];
    if (height == 0) continue;
    if (const auto& heading = l.lanes[i].heading; !heading.empty())
      svg.text(12, top - kHeading + 14, heading, "start", "font-weight=\"bold\"");
    svg.text(left - 8, top + 11, l.lanes[i].name, "end");
    svg.line(left, top - kGap / 2, right, top - kGap / 2, "stroke=\"#eeeeee\"");
    draw_bars(svg, l, l.lanes[i], x, top, row);
  }
  const auto drawn = [&all = places](std::size_t lane) { return lane < all.size() && all[lane].height != 0; };
  for (const auto& a : l.arrows)
    if (drawn(a.from) && drawn(a.to) && a.begin >= l.begin && a.end <= l.end)
      draw_arrow(svg, x.at(a.begin), places[a.from].top + places[a.from].height - 2, x.at(a.end),
                 places[a.to].top + (static_cast<double>(a.row) + 0.5) * row);
  draw_keys(&svg, l, kLaneRight, right, bottom + 12);
  return svg.close();
}

}}  // namespace sdma::v0_3
