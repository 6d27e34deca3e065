// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "schedule_file.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collectives::perf {

namespace {

std::string times(std::optional<double> t) { return t ? fmt::format("{:.2f}", *t) : "-"; }

/// With half of its interval, if it has one.
std::string times(std::span<const Point> points, const Point& p) {
  return times(speed_up(points, p)) +
         (p.speed_up_uncertainty ? fmt::format(" +- {:.2f}", *p.speed_up_uncertainty) : "");
}

template <class Counts> const Point* fastest_of(std::span<const Point> points, std::uint64_t bytes, Counts counts) {
  const Point* best = nullptr;
  for (const auto& p : points)
    if (p.bytes == bytes && counts(p.way) && (!best || p.us.median < best->us.median)) best = &p;
  return best;
}

std::string speed_ups(std::span<const Point> points) {
  auto ways = ways_of(points);
  std::erase(ways, kBase);
  const bool intervals =
      std::any_of(points.begin(), points.end(), [](const Point& p) { return p.speed_up_uncertainty.has_value(); });
  // The names of files may be long.
  const auto width_of = [&](const Way& w) { return std::max<std::size_t>(intervals ? 13 : 9, name(w).size()); };
  std::string text = "# Speed-up over pcpy, by medians\n#" + fmt::format("{:>8}", "size");
  for (const auto& w : ways) text += fmt::format(" {:>{}}", name(w), width_of(w));
  text += "   best\n";
  for (const auto bytes : sizes_of(points)) {
    if (!find(points, bytes, kBase)) continue;
    text += fmt::format("#{:>8}", size_text(bytes));
    for (const auto& w : ways) {
      const auto* const p = find(points, bytes, w);
      text += fmt::format(" {:>{}}", p ? times(points, *p) : "-", width_of(w));
    }
    const auto* const best = fastest(points, bytes, true);
    text += "   " + (best ? name(best->way) : "-");
    for (const auto& way : best ? best->ties : std::vector<Way>{}) text += " or " + name(way);
    text += "\n";
  }
  return text + "#\n";
}

std::string ranges(const char* title, const std::vector<Range>& all) {
  if (all.empty()) return {};
  auto text = fmt::format("# {:<33}over pcpy\n", title);
  for (const auto& r : all) {
    text += fmt::format("#{:>8} to {:>8}   {:<9}", size_text(r.least), size_text(r.most), name(r.way));
    if (r.least_speed_up)
      text += "  " + times(r.least_speed_up) +
              (times(r.least_speed_up) == times(r.most_speed_up) ? "" : " to " + times(r.most_speed_up));
    text += "\n";
  }
  return text + "#\n";
}

}  // namespace

const Point* fastest(std::span<const Point> points, std::uint64_t bytes, bool prelaunch) {
  return fastest_of(points, bytes, [&](const Way& w) {
    return w.rival == Rival::none && w.variant != Variant::automatic && (prelaunch || !prelaunched(w));
  });
}

std::vector<Range> best(std::span<const Point> points, bool prelaunch, double tie) {
  std::vector<Range> all;
  for (const auto bytes : sizes_of(points)) {
    const auto* p = fastest(points, bytes, prelaunch);
    if (!p) continue;
    const auto* const same = all.empty() ? nullptr : find(points, bytes, all.back().way);
    const bool goes_on = same && (same->us.median <= p->us.median * tie ||
                                  std::find(p->ties.begin(), p->ties.end(), same->way) != p->ties.end());
    if (goes_on) p = same;
    const auto s = speed_up(points, *p);
    if (!goes_on) all.push_back({bytes, bytes, p->way, s, s});
    auto& r = all.back();
    r.most = bytes;
    if (s) r.least_speed_up = std::min(r.least_speed_up.value_or(*s), *s);
    if (s) r.most_speed_up = std::max(r.most_speed_up.value_or(*s), *s);
  }
  return all;
}

bool comparable(const Settings& s) noexcept { return s.where != sdma::DeviceKind::soft && s.caveat.empty(); }

std::string summary(std::span<const Point> points, bool comparable) {
  const auto ways = ways_of(points);
  if (ways.size() < 2) return {};
  if (!comparable)
    return "# No variant is called best, because these are not times of engines: --device=simulate predicts those of "
           "engines.\n#\n";
  std::string text;
  if (std::find(ways.begin(), ways.end(), kBase) != ways.end()) text += speed_ups(points);
  const bool some_prelaunch = std::any_of(ways.begin(), ways.end(), prelaunched);
  const bool modelled = std::any_of(points.begin(), points.end(), [](const Point& p) { return !p.ties.empty(); });
  if (modelled)
    text +=
        "# Ties: the model does not know which of these ways is faster; their ratio is within its 68 % interval around "
        "1.\n#\n";
  text += ranges(modelled ? "Best by size (ties as above)" : "Best by size (3 % is a tie)", best(points, true));
  if (some_prelaunch) text += ranges("The same without prelaunch", best(points, false));
  return text;
}

std::string rests_on(std::span<const Point> points) {
  struct Other {
    const Point* point{};
    const sdma::Sensitivity::Alternative* alternative{};
    double change() const { return std::abs(alternative->ns / point->spread->ns - 1); }
  };
  std::vector<Other> all;
  for (const auto& p : points) {
    if (!p.spread) continue;
    for (const auto& a : p.spread->alternatives) {
      const Other now{&p, &a};
      const auto same = std::find_if(all.begin(), all.end(), [&](const Other& o) {
        return o.point->way == p.way && o.alternative->cost == a.cost;
      });
      if (same == all.end()) all.push_back(now);
      else if (now.change() > same->change()) *same = now;
    }
  }
  std::string text;
  for (const auto& o : all)
    text += fmt::format("# or: {} takes {} instead of {} at {} if {}\n",
                        name(o.point->way) + (o.point->at.empty() ? "" : ", " + o.point->at),
                        sdma::time_text(o.alternative->ns), sdma::time_text(o.point->spread->ns),
                        size_text(o.point->bytes), o.alternative->when);
  return text.empty() ? text : text + "#\n";
}

std::vector<Comparison> compared(std::span<const Point> points) {
  std::vector<Comparison> all;
  for (const auto bytes : sizes_of(points)) {
    const auto* const ours = fastest(points, bytes, true);
    const auto* const theirs = fastest_of(points, bytes, [](const Way& w) { return w.rival != Rival::none; });
    if (!ours || !theirs) continue;
    all.push_back({.bytes = bytes,
                   .ours = ours->way,
                   .theirs = theirs->way,
                   .ours_us = ours->us.median,
                   .theirs_us = theirs->us.median,
                   .tie = ours->us.lower <= theirs->us.upper && theirs->us.lower <= ours->us.upper});
  }
  return all;
}

std::string against(std::span<const Point> points) {
  const auto all = compared(points);
  if (all.empty()) return {};
  const bool intervals = std::any_of(points.begin(), points.end(), [](const Point& p) { return p.spread.has_value(); });
  std::string text =
      fmt::format("# Against {}, by medians; a tie: {}\n", family_of(all.front().theirs.rival),
                  all.front().theirs.rival != Rival::brought ? "the middle halves of both ways' rounds overlap"
                  : intervals                                ? "theirs is in the 68 % interval of ours"
                                                             : "theirs is in the middle half of our rounds");
  text +=
      fmt::format("#{:>8}  {:<9} {:>9}  {:<9} {:>9}  {:>11}\n", "size", "ours", "us", "theirs", "us", "theirs/ours");
  for (const auto& c : all)
    text += fmt::format("#{:>8}  {:<9} {:>9.2f}  {:<9} {:>9.2f}  {:>11.2f}{}\n", size_text(c.bytes), name(c.ours),
                        c.ours_us, name(c.theirs), c.theirs_us, c.theirs_us / c.ours_us, c.tie ? "  tie" : "");
  return text + "#\n";
}

}  // namespace collectives::perf
