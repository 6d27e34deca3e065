#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collectives::perf {
namespace {

// In pixels.
constexpr double kWidth = 900, kLeft = 80, kRight = 790, kTop = 70, kHeight = 290, kBetween = 80, kLabel = 15;
constexpr int kMostTicks = 9;

struct Curve {
  Way way{};
  std::vector<std::pair<double, double>> points{};  ///< logarithms to base 2
};

/// Told apart by readers who see fewer colours, too.
std::string_view colour(Variant v) noexcept {
  switch (v) {
    case Variant::pcpy: return "#555555";
    case Variant::bcst: return "#d55e00";
    case Variant::swap: return "#cc79a7";
    case Variant::b2b: return "#0072b2";
    case Variant::automatic: return "#009e73";
  }
  return "#000000";
}

std::string escaped(std::string_view s) {
  std::string text;
  for (const char c : s)
    if (c == '&') text += "&amp;";
    else if (c == '<') text += "&lt;";
    else if (c == '>') text += "&gt;";
    else if (c == '"') text += "&quot;";
    else text += c;
  return text;
}

/// An axis by logarithm: from value to pixel, and where its lines are.
class Axis {
 public:
  Axis(double least, double most, double from, double to) : least_(least), most_(most), from_(from), to_(to) {
    constexpr double kHalf = 0.5;
    if (most_ - least_ < kHalf) least_ -= kHalf, most_ += kHalf;
  }
  double at(double log) const noexcept { return from_ + (log - least_) / (most_ - least_) * (to_ - from_); }
  std::vector<int> ticks() const {
    const int first = static_cast<int>(std::ceil(least_ - 1e-9)), last = static_cast<int>(std::floor(most_ + 1e-9));
    const int step = std::max(1, (last - first + kMostTicks) / kMostTicks);
    std::vector<int> all;
    for (int t = first; t <= last; ++t)
      if ((t % step + step) % step == 0) all.push_back(t);
    return all;
  }

 private:
  double least_, most_, from_, to_;
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view fill, std::string_view text,
                    std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y, anchor, fill,
                     more, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view stroke) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
                     stroke);
}

/// Names at the curves' ends, moved apart where they would lie on each other.
std::string names(const std::vector<Curve>& curves, const Axis& y, double bottom) {
  std::vector<std::pair<double, const Curve*>> all;
  for (const auto& c : curves) all.emplace_back(y.at(c.points.back().second), &c);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> at(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    at[i] = i == 0 ? all[i].first : std::max(all[i].first, at[i - 1] + kLabel);
  for (std::size_t i = all.size(); i-- > 0;) at[i] = std::min(at[i], i + 1 == all.size() ? bottom : at[i + 1] - kLabel);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto fill = colour(all[i].second->way.variant);
    text += line(kRight + 3, all[i].first, kRight + 18, at[i], fill);
    text += text_at(kRight + 22, at[i] + 4, "start", fill, name(all[i].second->way));
  }
  return text;
}

std::string curve(const Curve& c, const Axis& x, const Axis& y) {
  std::string path, marks;
  const auto stroke = colour(c.way.variant);
  for (const auto& [size, value] : c.points) {
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.at(size), y.at(value));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" stroke=\"{}\"/>\n", x.at(size),
                         y.at(value), c.way.prelaunch ? "#ffffff" : stroke, stroke);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", path, stroke,
                     c.way.prelaunch ? " stroke-dasharray=\"6 3\"" : "") +
         marks;
}

std::string panel(std::string_view title, std::string_view unit, double top, const std::vector<std::uint64_t>& sizes,
                  const std::vector<Curve>& curves, bool with_one) {
  double low = with_one ? 0 : curves[0].points[0].second, high = low;
  for (const auto& c : curves)
    for (const auto& [size, value] : c.points) low = std::min(low, value), high = std::max(high, value);
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const double bottom = top + kHeight;
  const Axis x{std::log2(static_cast<double>(*least)), std::log2(static_cast<double>(*most)), kLeft, kRight};
  const Axis y{std::floor(low), std::ceil(high), bottom, top};

  auto text = text_at(kLeft, top - 12, "start", "#000000", title, " font-weight=\"bold\"");
  for (const int t : y.ticks()) {
    text += line(kLeft, y.at(t), kRight, y.at(t), with_one && t == 0 ? "#888888" : "#e0e0e0");
    text += text_at(kLeft - 8, y.at(t) + 4, "end", "#333333", fmt::format("{:.3g}{}", std::exp2(t), unit));
  }
  const auto size_at = [&](double log, std::uint64_t bytes) {
    text += line(x.at(log), bottom, x.at(log), bottom + 5, "#333333");
    text += text_at(x.at(log), bottom + 20, "middle", "#333333", size_text(bytes));
  };
  if (const auto ticks = x.ticks(); ticks.size() > 1)
    for (const int t : ticks) size_at(t, std::uint64_t{1} << t);
  else
    for (const auto bytes : {*least, *most}) size_at(std::log2(static_cast<double>(bytes)), bytes);
  text += line(kLeft, bottom, kRight, bottom, "#333333") + line(kLeft, top, kLeft, bottom, "#333333");
  text += text_at((kLeft + kRight) / 2, bottom + 40, "middle", "#333333", "size, bytes");
  for (const auto& c : curves) text += curve(c, x, y);
  return text + names(curves, y, bottom);
}

}  // namespace

std::string plot_svg(const Settings& s, std::string_view device, std::span<const Point> points) {
  if (points.empty()) return {};
  std::vector<Curve> faster, busbw;
  for (const auto& way : ways_of(points)) {
    Curve f{way}, b{way};
    for (const auto& p : points) {
      if (p.way != way) continue;
      const auto size = std::log2(static_cast<double>(p.bytes));
      b.points.emplace_back(size, std::log2(p.busbw));
      if (const auto times = speed_up(points, p)) f.points.emplace_back(size, std::log2(*times));
    }
    busbw.push_back(std::move(b));
    if (!f.points.empty()) faster.push_back(std::move(f));
  }
  const bool both = faster.size() > 1;
  const double second = kTop + (both ? kHeight + kBetween : 0), height = second + kHeight + 60;
  const auto title = fmt::format("{}, {} GPUs, {}", name(s.options.collective), s.options.gpus, device);
  auto text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      kWidth, height, escaped(title));
  text += text_at(kLeft, 30, "start", "#000000", title, " font-size=\"15\"");
  const auto sizes = sizes_of(points);
  if (both) text += panel("speed-up over pcpy (dashed: prelaunch)", "x", kTop, sizes, faster, true);
  text += panel("bus bandwidth, GB/s (dashed: prelaunch)", "", second, sizes, busbw, false);
  return text + "</svg>\n";
}

}  // namespace collectives::perf
