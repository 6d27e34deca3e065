// Curves over sizes: x by its logarithm, y from zero.
#include "sdma/simulate/report.hpp"
#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace sdma {
inline namespace v0 {
namespace {

using namespace detail;

constexpr std::string_view kColours[] = {"#3b78b5", "#4e9f50", "#d9782d", "#8064a2", "#c03028", "#8c564b", "#2a9d9d"};
constexpr double kPlot = 550, kHeight = 430, kLeft = 60, kRight = 150, kTop = 44, kBottom = 56, kNames = 40, kName = 18;

std::string size_text(double bytes) {
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  while (unit < 4 && bytes >= 1024) bytes /= 1024, ++unit;
  return fmt::format("{:.4g}{}", bytes, kUnits[unit]);
}

}  // namespace

std::string curves_svg(const Curves& c) {
  std::set<double> xs;
  double most = 0;
  for (const auto& s : c.series)
    for (const auto& [x, y] : s.points)
      if (x > 0 && std::isfinite(y)) xs.insert(x), most = std::max(most, y);
  // Names stand beside the plot: what they need comes to its width and height.
  double names = 0;
  for (const auto& s : c.series) names = std::max(names, text_width(s.name));
  const auto right = std::max({kRight, kNames + names + 12, text_width(c.title) * 1.5 + 24 - kLeft - kPlot});
  const auto width = kLeft + kPlot + right;
  const auto height = std::max(kHeight, kTop + kName * static_cast<double>(c.series.size() + 1));
  const auto first = xs.empty() ? 1 : std::log2(*xs.begin()), last = xs.empty() ? 2 : std::log2(*xs.rbegin());
  const auto top = most > 0 ? most * 1.08 : 1;
  const auto x_of = [&](double x) { return kLeft + (std::log2(x) - first) / std::max(last - first, 1e-9) * kPlot; };
  const auto y_of = [&](double y) { return kHeight - kBottom - y / top * (kHeight - kTop - kBottom); };
  Svg svg(width, height);
  svg.text(12, 22, c.title, "start", "font-size=\"14\" font-weight=\"bold\"");
  const auto power = std::pow(10, std::floor(std::log10(top / 5)));
  const auto step = power * (top / 5 / power >= 5 ? 5 : top / 5 / power >= 2 ? 2 : 1);
  for (double y = 0; y <= top; y += step) {
    svg.line(kLeft, y_of(y), kLeft + kPlot, y_of(y), "stroke=\"#e4e4e4\"");
    svg.text(kLeft - 6, y_of(y) + 4, fmt::format("{:.4g}", y), "end");
  }
  double drawn = -1e9;
  for (const auto x : xs) {
    svg.line(x_of(x), y_of(0), x_of(x), y_of(0) + 4, "stroke=\"#555555\"");
    if (x_of(x) - drawn < 30) continue;
    svg.text(x_of(x), y_of(0) + 16, c.bytes ? size_text(x) : fmt::format("{:.4g}", x), "middle");
    drawn = x_of(x);
  }
  svg.line(kLeft, y_of(0), kLeft + kPlot, y_of(0), "stroke=\"#555555\"");
  svg.text(kLeft + kPlot / 2, kHeight - 16, c.x_label, "middle");
  svg.text(16, (kTop + kHeight - kBottom) / 2, c.y_label, "middle",
           fmt::format("transform=\"rotate(-90 16 {:.0f})\"", (kTop + kHeight - kBottom) / 2));
  for (std::size_t i = 0; i < c.series.size(); ++i) {
    const auto& s = c.series[i];
    const auto colour = kColours[i % std::size(kColours)];
    const auto dash = s.dashed ? " stroke-dasharray=\"5 3\"" : "";
    std::string path;
    for (const auto& [x, y] : s.points)
      if (x > 0 && std::isfinite(y))
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_of(x), y_of(y));
    if (!path.empty())
      svg.raw(fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", path, colour, dash));
    for (const auto& [x, y] : s.points)
      if (x > 0 && std::isfinite(y))
        svg.raw(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\" fill=\"{}\"><title>{}</title></circle>\n",
                            x_of(x), y_of(y), colour, escaped(fmt::format("{} {}: {:.4g}", s.name, size_text(x), y))));
    const auto y = kTop + 10 + kName * static_cast<double>(i);
    svg.line(kLeft + kPlot + 12, y, kLeft + kPlot + 34, y,
             fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", colour, dash));
    svg.text(kLeft + kPlot + kNames, y + 4, s.name);
  }
  return svg.close();
}

}  // namespace v0
}  // namespace sdma
