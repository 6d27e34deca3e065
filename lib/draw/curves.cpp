// SPDX-License-Identifier: MIT
#include "curves.hpp"

#include "axis.hpp"
#include "palette.hpp"
#include "svg.hpp"

#include <iterator>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

constexpr std::string_view kColours[] = {kBlue, kVermilion, kGreen, kPurple, kOrange, kSky, kBlack};
// In pixels.
constexpr double kHeight = 400, kLeastHeight = 160, kLeft = 60, kRight = 20, kTop = 44, kBottom = 56, kKey = 34,
                 kKeyGap = 22, kKeyLine = 20;

std::string x_text(const Curves& c, double x) {
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  while (c.bytes && unit + 1 < std::size(kUnits) && x >= 1024) x /= 1024, ++unit;
  return fmt::format("{:.4g}{}", x, kUnits[unit]);
}
std::string y_text(double y) { return fmt::format("{:.4g}", y); }

/// One plot: its title, its numbers at the left, and the names of its curves below it.
struct Plot {
  Plot(const Curves& curves, double width, double of_axes)
      : c(curves), axes(of_axes), y(y_axis()), title(title_lines(c.title, width - 24)) {
    for (const auto v : y.ticks()) left = std::max(left, text_width(y_text(v)) + 34);
  }

  double title_height() const { return kTitleLine * static_cast<double>(title.size() - 1); }
  /// Where the name of each curve begins, if the first is at (from, 0), and the height of all.
  std::pair<std::vector<std::pair<double, double>>, double> keys(double from, double to) const {
    std::vector<std::pair<double, double>> at;
    double x = from, line = 0;
    for (const auto& s : c.series) {
      const auto width = kKey + text_width(s.name);
      if (x > from && x + width > to) x = from, line += kKeyLine;
      at.emplace_back(x, line);
      x += width + kKeyGap;
    }
    return {std::move(at), c.series.empty() ? 0 : line + kKeyLine};
  }
  double height(double from, double to) const { return title_height() + axes + keys(from, to).second; }
  /// What does not fit into a column, because a name is that long.
  double widest() const {
    double out = 0;
    for (const auto& s : c.series) out = std::max(out, left + kKey + text_width(s.name));
    for (const auto& line : title) out = std::max(out, 12 + title_width(line));
    return out;
  }

  void draw(Svg& svg, double from, double to, double top) const {
    svg.title(top + 22, title);
    top += title_height();
    const auto bottom = top + axes - kBottom, middle = (top + kTop + bottom) / 2;
    for (const auto v : y.ticks()) {
      svg.line(from, top + y.at(v), to, top + y.at(v), Svg::kGrid);
      svg.text(from - 6, top + y.at(v) + 4, y_text(v), "end");
    }
    if (c.ratios) svg.line(from, top + y.at(1), to, top + y.at(1), "stroke=\"#555555\" stroke-dasharray=\"1 3\"");
    const Axis x(Axis::Scale::log, sizes.empty() ? 1 : *sizes.begin(), sizes.empty() ? 2 : *sizes.rbegin(), from, to);
    double before = -HUGE_VAL, free = -HUGE_VAL;
    for (const auto size : sizes) {
      const auto at = x.at(size), half = text_width(x_text(c, size)) / 2;
      svg.line(at, bottom, at, bottom + 4, "stroke=\"#555555\"");
      if (at - before < 36 || at - half < free) continue;
      svg.text(at, bottom + 18, x_text(c, size), "middle");
      before = at, free = at + half + 4;
    }
    svg.line(from, bottom, to, bottom, "stroke=\"#555555\"");
    svg.text((from + to) / 2, bottom + kBottom - 14, c.x_label, "middle");
    svg.text(16, middle, c.y_label, "middle", fmt::format("transform=\"rotate(-90 16 {:.0f})\"", middle));
    const auto names = keys(from, to).first;
    for (std::size_t i = 0; i < c.series.size(); ++i)
      curve(svg, x, i, top, names[i].first, top + axes + names[i].second);
  }

  const Curves& c;
  double axes;  // the height without title and legend
  std::set<double> sizes{};
  Axis y;
  std::vector<std::string> title;
  double left = kLeft;

 private:
  bool shown(double size, double v) const {
    return size > 0 && std::isfinite(size) && std::isfinite(v) && (!c.log_y || v > 0);
  }

  Axis y_axis() {
    double least = HUGE_VAL, most = 0;
    for (const auto& s : c.series)
      for (const auto& [size, v] : s.points)
        if (shown(size, v)) sizes.insert(size), least = std::min(least, v), most = std::max(most, v);
    for (const auto& s : c.series)
      for (const auto& [low, high] : s.band)
        if (std::isfinite(high)) most = std::max(most, high);
    if (c.ratios) least = std::min(least, 1.0), most = std::max(most, 1.0);
    if (!c.log_y) return {Axis::Scale::linear, 0, most > 0 ? most * 1.08 : 1, axes - kBottom, kTop};
    if (sizes.empty()) least = most = 1;
    least = std::exp2(std::floor(std::log2(least))), most = std::exp2(std::ceil(std::log2(most)));
    return {Axis::Scale::log, least, most, axes - kBottom, kTop};
  }

  /// Along the upper ends, and back along the lower ones.
  std::string band(const Curves::Series& s, const Axis& x, double top) const {
    std::string there, back;
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const auto size = s.points[i].first;
      const auto [low, high] = s.band[i];
      if (!shown(size, low) || !shown(size, high)) continue;
      there += fmt::format("{}{:.1f} {:.1f}", there.empty() ? "M" : " L", x.at(size), top + y.at(high));
      back.insert(0, fmt::format(" L{:.1f} {:.1f}", x.at(size), top + y.at(low)));
    }
    return there.empty() ? "" : there + back + " Z";
  }

  void curve(Svg& svg, const Axis& x, std::size_t i, double top, double key, double line) const {
    const auto& s = c.series[i];
    const auto colour = s.colour.empty() ? kColours[i % std::size(kColours)] : std::string_view(s.colour);
    const auto style = [&](double width) {
      return fmt::format("stroke=\"{}\" stroke-width=\"{}\"{}", escaped(colour), width,
                         s.dashed ? " stroke-dasharray=\"5 3\"" : "");
    };
    if (s.band.size() == s.points.size()) svg.area(band(s, x, top), colour);
    std::string path;
    for (const auto& [size, v] : s.points)
      if (shown(size, v)) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x.at(size), top + y.at(v));
    if (!path.empty()) svg.path(path, style(1.8));
    for (const auto& [size, v] : s.points)
      if (shown(size, v))
        svg.circle(x.at(size), top + y.at(v), 2.4, colour,
                   fmt::format("{} {}: {}", s.name, x_text(c, size), y_text(v)));
    svg.line(key, line, key + kKey - 8, line, style(2));
    svg.text(key + kKey, line + 4, s.name);
  }
};

}  // namespace

std::string curves_svg(const Curves& c) { return stacked_curves_svg({&c, 1}); }

std::string stacked_curves_svg(std::span<const Curves> all) {
  const auto width = all.empty() || all[0].width <= 0 ? kColumn : all[0].width;
  double left{}, right{}, height{}, top = 0;
  const auto arranged = [&](double axes) {
    std::vector<Plot> plots;
    for (const auto& c : all) plots.emplace_back(c, width, axes);
    left = kLeft, right = width - kRight, height = 0;
    for (const auto& p : plots) left = std::max(left, p.left), right = std::max(right, p.widest());
    for (const auto& p : plots) height += p.height(left, right);
    return plots;
  };
  auto plots = arranged(kHeight);
  // What titles and legends leave is divided between the axes.
  if (!all.empty() && all[0].height > 0) {
    const auto axes = kHeight + (all[0].height - height) / static_cast<double>(all.size());
    plots = arranged(std::max(axes, kLeastHeight));
  }
  Svg svg(right + kRight, height);
  for (const auto& p : plots) p.draw(svg, left, right, top), top += p.height(left, right);
  return svg.close();
}

}}  // namespace sdma::v0_3
