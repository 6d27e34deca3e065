// A trace as a picture: a row a lane, a bar a packet, arrows from triggers to completions.
#include "sdma/packets/registry.hpp"
#include "sdma/simulate/report.hpp"
#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace sdma {
inline namespace v0 {
namespace {

using namespace detail;

struct Bar {
  double begin{}, end{};
  std::string_view name{};
  std::size_t line = 0;  ///< of its lane: what overlaps lies below
};

std::string_view colour(std::string_view packet) {
  if (packet == "copy_broadcast") return "#4e9f50";
  if (packet == "copy_swap") return "#8064a2";
  if (packet.starts_with("copy")) return "#3b78b5";
  if (packet.starts_with("poll")) return "#d0d0d0";
  if (packet == "atomic" || packet == "fence") return "#d9782d";
  if (packet == "host") return "#8c564b";
  return "#999999";
}

constexpr double kLeft = 190, kTop = 44, kLine = 7, kGap = 5, kPlot = 1190, kRight = 20, kLabel = 9;
constexpr std::size_t kMostBars = 20000;

/// A step of the axis: 1, 2 or 5 times a power of ten.
double step_of(double span) {
  const auto raw = span / 10, power = std::pow(10, std::floor(std::log10(raw)));
  for (const auto f : {1.0, 2.0, 5.0})
    if (f * power >= raw) return f * power;
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const trace::Trace& t, const TimelineOptions& o) : t_(t), o_(o) {}

  std::string run() {
    collect();
    lay_out();
    Svg svg(left_ + kPlot + kRight, std::max(bottom_ + 50, 120.0));
    svg.text(12, 20, o_.title.empty() ? "timeline" : o_.title, "start", "font-size=\"14\" font-weight=\"bold\"");
    axis(svg);
    for (std::size_t l = 0; l < t_.lanes.size(); ++l) {
      if (heights_[l] == 0) continue;
      svg.text(left_ - 8, tops_[l] + 8, label(l), "end", "font-size=\"9\"");
      svg.line(left_, tops_[l] - kGap / 2, left_ + kPlot, tops_[l] - kGap / 2, "stroke=\"#eeeeee\"");
      for (const auto& b : bars_[l])
        svg.box(x(b.begin), tops_[l] + static_cast<double>(b.line) * kLine, std::max(0.4, x(b.end) - x(b.begin)),
                kLine - 1, colour(b.name),
                fmt::format("{} {} {:.3f} to {:.3f} us", b.name, t_.lanes[l].name, b.begin / 1e3, b.end / 1e3));
    }
    arrows(svg);
    legend(svg);
    return svg.close();
  }

 private:
  std::string label(std::size_t lane) const { return t_.lanes[lane].group + " " + t_.lanes[lane].name; }
  double x(double ns) const { return left_ + (ns - begin_) / (end_ - begin_) * kPlot; }

  void collect() {
    bars_.resize(t_.lanes.size());
    std::map<std::pair<std::uint32_t, std::uint64_t>, Bar> open;
    double first = 0, last = 0;
    bool any = false;
    const auto keep = [&](std::uint32_t lane, const Bar& b) {
      if (lane < bars_.size() && kept_ < kMostBars) bars_[lane].push_back(b), ++kept_;
      else ++left_out_;
    };
    for (const auto& e : t_.events) {
      const auto ns = static_cast<double>(e.ns);
      if (!any) first = ns, any = true;
      last = std::max(last, ns);
      if (e.lane.value >= t_.lanes.size()) continue;
      const std::pair key{e.lane.value, e.position};
      if (e.kind == trace::Kind::packet_begin) {
        const auto* info = identify(e.packet());
        const bool host = t_.lanes[e.lane.value].group == "host";
        open[key] = {.begin = ns, .end = ns, .name = host ? "host" : info ? info->name : "packet"};
      } else if (e.kind == trace::Kind::packet_end) {
        const auto found = open.find(key);
        if (found == open.end()) continue;
        found->second.end = ns;
        keep(e.lane.value, found->second);
        open.erase(found);
      } else if (e.kind == trace::Kind::flow_begin) {
        flows_[e.value].first = {e.lane.value, ns};
      } else if (e.kind == trace::Kind::flow_end) {
        flows_[e.value].second = {e.lane.value, ns};
      }
    }
    for (auto& [key, b] : open) b.end = last, keep(key.first, b);
    begin_ = o_.begin_ns == 0 && o_.end_ns == 0 ? first : o_.begin_ns;
    end_ = o_.begin_ns == 0 && o_.end_ns == 0 ? last : o_.end_ns;
    if (end_ <= begin_) end_ = begin_ + 1;
  }

  void lay_out() {
    tops_.assign(t_.lanes.size(), 0);
    heights_.assign(t_.lanes.size(), 0);
    bottom_ = kTop + 14;
    // Threads first, then GPUs, then links, each in the order in which they were made.
    std::vector<std::size_t> order(t_.lanes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto rank = [&](std::size_t i) {
      return t_.lanes[i].group == "host" ? 0 : t_.lanes[i].group == "links" ? 2 : 1;
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : t_.lanes[a].group < t_.lanes[b].group;
    });
    for (const auto l : order) {
      auto& all = bars_[l];
      std::erase_if(all, [&](const Bar& b) { return b.end < begin_ || b.begin > end_; });
      if (all.empty()) continue;
      std::stable_sort(all.begin(), all.end(), [](const Bar& a, const Bar& b) { return a.begin < b.begin; });
      std::vector<double> free;
      for (auto& b : all) {
        b.begin = std::max(b.begin, begin_);
        b.end = std::min(b.end, end_);
        b.line = 0;
        while (b.line < free.size() && free[b.line] > b.begin) ++b.line;
        if (b.line == free.size()) free.push_back(0);
        free[b.line] = b.end;
      }
      left_ = std::max(left_, text_width(label(l), kLabel) + 20);
      tops_[l] = bottom_;
      heights_[l] = std::max(10.0, static_cast<double>(free.size()) * kLine);
      bottom_ += heights_[l] + kGap;
    }
  }

  void axis(Svg& svg) const {
    const auto step = step_of((end_ - begin_) / 1e3);
    const auto first = std::ceil(begin_ / 1e3 / step) * step;
    for (auto us = first; us <= end_ / 1e3 + step / 1e6; us += step) {
      svg.line(x(us * 1e3), kTop, x(us * 1e3), bottom_, "stroke=\"#e4e4e4\"");
      svg.text(x(us * 1e3), kTop - 4, fmt::format("{:.6g}", us), "middle", "fill=\"#555555\"");
    }
    svg.text(left_ - 8, kTop - 4, "us", "end", "fill=\"#555555\"");
  }

  void arrows(Svg& svg) const {
    for (const auto& [number, f] : flows_) {
      const auto [from, to] = f;
      if (heights_[from.first] == 0 || heights_[to.first] == 0 || to.second == 0) continue;
      if (from.second < begin_ || to.second > end_) continue;
      const auto x1 = x(from.second), y1 = tops_[from.first] + heights_[from.first] - 2, x2 = x(to.second),
                 y2 = tops_[to.first] + heights_[to.first] / 2;
      svg.raw(
          fmt::format("<path d=\"M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" "
                      "stroke=\"#c03028\" stroke-opacity=\"0.35\" stroke-width=\"0.8\"/>\n",
                      x1, y1, x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2));
      svg.raw(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.8\" fill=\"#c03028\"/>\n", x2, y2));
    }
  }

  void legend(Svg& svg) const {
    auto at = left_;
    const auto y = bottom_ + 16;
    for (const auto& [name, of] : {std::pair{"host builds", "host"},
                                   {"poll", "poll_mem"},
                                   {"copy", "copy_linear"},
                                   {"broadcast", "copy_broadcast"},
                                   {"swap", "copy_swap"},
                                   {"completion", "atomic"},
                                   {"other", ""}}) {
      svg.box(at, y, 10, 8, colour(of), "");
      svg.text(at + 14, y + 8, name);
      at += 100;
    }
    svg.text(at, y + 8, "red: from trigger to completion", "start", "fill=\"#c03028\"");
    if (t_.lost != 0 || left_out_ != 0)
      svg.text(left_, y + 24, fmt::format("{} events were lost, {} bars are not drawn", t_.lost, left_out_));
  }

  using Ends = std::pair<std::uint32_t, double>;
  const trace::Trace& t_;
  const TimelineOptions& o_;
  std::vector<std::vector<Bar>> bars_;
  std::map<std::uint64_t, std::pair<Ends, Ends>> flows_;
  std::vector<double> tops_, heights_;
  double begin_ = 0, end_ = 1, bottom_ = 0, left_ = kLeft;
  std::size_t kept_ = 0, left_out_ = 0;
};

}  // namespace

std::string timeline_svg(const trace::Trace& t, const TimelineOptions& o) { return Drawing{t, o}.run(); }

}  // namespace v0
}  // namespace sdma
