// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "draw/curves.hpp"
#include "draw/palette.hpp"
#include "schedule_file.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace collectives::perf {
namespace {

std::string_view colour(const Way& w, const Settings& s) noexcept {
  using namespace sdma::detail;
  if (w.file) {
    constexpr std::string_view kFiles[] = {"#7b3294", "#a6611a", "#008080", "#999933", "#882255"};
    std::size_t i = 0;
    while (i < s.files.size() && s.files[i].get() != w.file) ++i;
    return kFiles[i % std::size(kFiles)];
  }
  if (w.rival == Rival::brought) return kBlack;
  if (w.rival != Rival::none) return w.rival == Rival::nccl ? kOrange : kSky;
  switch (w.variant) {
    case Variant::pcpy: return kDarkGrey;
    case Variant::bcst: return kVermilion;
    case Variant::swap: return kPurple;
    case Variant::b2b: return kBlue;
    case Variant::automatic: return kGreen;
  }
  return kBlack;
}

}  // namespace

std::string plot_svg(const Settings& s, std::string_view device, std::span<const Point> points,
                     std::span<const Elsewhere> elsewhere) {
  if (points.empty()) return {};
  sdma::Curves faster{.x_label = "size, bytes", .y_label = "speed-up over pcpy", .log_y = true};
  sdma::Curves busbw{.x_label = "size, bytes", .y_label = "bus bandwidth, GB/s", .log_y = true};
  std::vector<std::string> swept;
  for (const auto& p : points)
    if (std::find(swept.begin(), swept.end(), p.at) == swept.end()) swept.push_back(p.at);
  for (const auto& [way, at] : [&] {
         std::vector<std::pair<Way, std::string>> all;
         for (const auto& a : swept)
           for (const auto& w : ways_of(points)) all.emplace_back(w, a);
         return all;
       }()) {
    sdma::Curves::Series f{.name = name(way) + (at.empty() ? "" : ", " + at),
                           .dashed = prelaunched(way),
                           .colour = swept.size() > 1 ? std::string() : std::string(colour(way, s))};
    auto b = f;
    for (const auto& p : points) {
      if (p.way != way || p.at != at) continue;
      const auto size = static_cast<double>(p.bytes);
      b.points.emplace_back(size, p.busbw);
      if (p.spread) b.band.emplace_back(p.busbw * p.us.mean / p.us.upper, p.busbw * p.us.mean / p.us.lower);
      const auto times = speed_up(points, p);
      if (!times) continue;
      f.points.emplace_back(size, *times);
      const auto off = p.speed_up_uncertainty.value_or(0);
      if (p.spread) f.band.emplace_back(*times - off, *times + off);
    }
    busbw.series.push_back(std::move(b));
    if (!f.points.empty()) faster.series.push_back(std::move(f));
  }
  for (const auto& e : elsewhere) {
    const auto curve = e.includes + ", " + e.machine + ", measured elsewhere";
    auto at =
        std::find_if(busbw.series.begin(), busbw.series.end(), [&](auto& series) { return series.name == curve; });
    if (at == busbw.series.end())
      at = busbw.series.insert(at, {.name = curve, .dashed = true, .colour = std::string(sdma::detail::kSky)});
    at->points.emplace_back(static_cast<double>(e.bytes), e.busbw);
  }
  std::vector<sdma::Curves> plots;
  if (faster.series.size() > 1) plots.push_back(std::move(faster));
  plots.push_back(std::move(busbw));
  plots.front().title = std::string(name(s.options.collective)) + ", " + std::to_string(s.options.gpus) + " GPUs, " +
                        std::string(device) + (!s.where ? "" : ", measured");
  s.figure.apply(plots.front());
  return sdma::stacked_curves_svg(plots);
}

}  // namespace collectives::perf
