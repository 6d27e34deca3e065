// SPDX-License-Identifier: MIT
// Draws a trace: one bar per packet, and arrows from triggers to completions.
#include "../draw/lanes.hpp"
#include "bars.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/trace/write.hpp"
#include "text.hpp"
#include "trace/page_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

/// With more bars than kMostBars, those that are narrower than 1/kPixels of the picture are merged into blocks.
constexpr std::size_t kMostBars = 20000, kMostArrows = 2000;
constexpr double kPixels = 1190;
/// The legend: the meaning of each colour, and a packet that has this colour.
constexpr std::pair<const char*, const char*> kKeys[] = {{"host", "host"},
                                                         {"poll", "poll_mem"},
                                                         {"copy", "copy_linear"},
                                                         {"broadcast", "copy_broadcast"},
                                                         {"swap", "copy_swap"},
                                                         {"completion", "atomic"},
                                                         {"other", ""}};

/// The colour that the page's colours.css has for this.
std::string named(std::string_view what) {
  const auto name = fmt::format("--{}: #", what);
  return std::string(detail::kPageColours.substr(detail::kPageColours.find(name) + name.size() - 1, 7));
}
std::string colour(std::string_view packet) {
  if (packet == "copy_broadcast") return named("broadcast");
  if (packet == "copy_swap") return named("swap");
  if (packet.starts_with("copy")) return named("copy");
  if (packet.starts_with("poll")) return named("wait");
  if (packet == "atomic" || packet == "fence") return named("sync");
  return named(packet == "host" ? "host" : "other");
}

/// What a bar shows, for its colour and its title.
std::string_view name_of(const Trace& t, const Event& begin) {
  if (begin.kind == Kind::action_begin) {
    const auto name = detail::action_name(begin, t);
    return name.starts_with("waits ") ? "poll" : "host";
  }
  if (t.lanes[begin.lane.value].group == "host") return "host";
  const auto* info = identify(begin.packet());
  return info ? info->name : "packet";
}

/// Adds the lanes in the picture's order: threads, GPUs, links. Returns each lane's index in the picture.
std::vector<std::size_t> add_lanes(const std::vector<Lane>& lanes, Lanes& picture) {
  std::vector<std::size_t> order(lanes.size()), place(lanes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    const auto rank = [](const Lane& l) {
      return std::pair(l.group == "host" ? 0 : l.group == "links" ? 2 : 1, l.group);
    };
    return rank(lanes[a]) < rank(lanes[b]);
  });
  for (const auto i : order) {
    place[i] = picture.lanes.size();
    picture.lanes.push_back({lanes[i].group + " " + lanes[i].name, {}});
  }
  return place;
}

/// Bars of one row that begin in one pixel, each narrower than it. A pixel that has one bar shows this bar.
struct PixelBlock {
  const detail::Bar* only{};
  double pixel = -1;
  std::size_t packets = 0;
  std::uint64_t from{}, to{}, busy{};
  std::map<std::string, std::uint64_t> colours{};  // ns that each ran

  void add(const detail::Bar& b, std::string_view name) {
    if (packets++ == 0) only = &b, from = b.from;
    to = std::max(to, b.to);
    busy += b.to - b.from;
    colours[colour(name)] += b.to - b.from;
  }
  const std::string& most() const {
    return std::max_element(colours.begin(), colours.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
};

class TimelineBars {
 public:
  TimelineBars(const Trace& t, const detail::Bars& packets, Lanes& picture, const std::vector<std::size_t>& place)
      : trace_(t), packets_(packets), picture_(picture), place_(place) {}

  double us(auto ns) const { return (static_cast<double>(ns) - static_cast<double>(packets_.first)) / 1e3; }

  /// Adds all bars to the picture, and returns a line about those that it does not show one by one.
  std::string add() {
    const auto all = visible([](const detail::Bar&) {});
    if (all <= kMostBars) {
      visible([&](const detail::Bar& b) { bar(b); });
      return {};
    }
    std::map<std::pair<std::size_t, std::size_t>, PixelBlock> open;  // by lane and row
    visible([&](const detail::Bar& b) {
      const auto lane = b.begin->lane.value;
      const auto pixel = std::floor((us(b.from) - picture_.begin) / width());
      auto& block = open[{lane, b.row}];
      const bool narrow = us(b.to) - us(b.from) < width();
      if (block.packets != 0 && (!narrow || block.pixel != pixel)) close(block);
      if (!narrow) return bar(b);
      block.pixel = pixel;
      block.add(b, name_of(trace_, *b.begin));
    });
    for (auto& [row, block] : open)
      if (block.packets != 0) close(block);
    std::string note;
    if (blocks_ != 0) note = fmt::format("{} packets are drawn as {} blocks", merged_, blocks_);
    if (left_out_ != 0) note += fmt::format("{}{} bars are not drawn", note.empty() ? "" : ", ", left_out_);
    return note;
  }

 private:
  double width() const { return (picture_.end - picture_.begin) / kPixels; }

  /// Calls `act` for each bar that overlaps the picture; returns how many there are.
  std::size_t visible(const auto& act) const {
    std::size_t n = 0;
    for (const auto& lane : packets_.lanes)
      for (const auto& b : lane.bars)
        if (us(b.to) >= picture_.begin && us(b.from) <= picture_.end) ++n, act(b);
    return n;
  }
  void draw(std::size_t lane, Lanes::Bar b) {
    if (drawn_ == kMostBars) ++left_out_;
    else ++drawn_, picture_.lanes[place_[lane]].bars.push_back(std::move(b));
  }
  void bar(const detail::Bar& b) {
    const auto lane = b.begin->lane.value;
    const auto name = name_of(trace_, *b.begin);
    const auto from = us(b.from), to = us(b.to);
    draw(lane, {from, to, b.row, colour(name),
                fmt::format("{} {} {:.3f} to {:.3f} us",
                            b.action() ? detail::action_text(*b.begin, trace_) : std::string(name),
                            trace_.lanes[lane].name, from, to)});
  }
  void close(PixelBlock& block) {
    const auto b = std::exchange(block, {});
    if (b.packets == 1) return bar(*b.only);
    const auto lane = b.only->begin->lane.value;
    const auto from = us(b.from), to = us(b.to);
    const auto busy =
        std::min(1.0, static_cast<double>(b.busy) / static_cast<double>(std::max<std::uint64_t>(1, b.to - b.from)));
    draw(lane, {from, to, b.only->row, b.most(),
                fmt::format("{} packets {} {:.3f} to {:.3f} us, busy {:.0f} %", b.packets, trace_.lanes[lane].name,
                            from, to, 100 * busy)});
    ++blocks_;
    merged_ += b.packets;
  }

  const Trace& trace_;
  const detail::Bars& packets_;
  Lanes& picture_;
  const std::vector<std::size_t>& place_;
  std::size_t drawn_ = 0, left_out_ = 0, blocks_ = 0, merged_ = 0;
};

/// The arrows of a trace, or every n-th of them.
void add_arrows(const Trace& t, const detail::Bars& packets, Lanes& picture, const std::vector<std::size_t>& place,
                std::vector<std::string>& notes) {
  const auto us = [&](auto ns) { return (static_cast<double>(ns) - static_cast<double>(packets.first)) / 1e3; };
  // At the same time, the end of an arrow may come before its beginning.
  std::map<std::uint64_t, std::pair<const Event*, const Event*>> flows;
  for (const auto& e : t.events)
    if (e.kind == Kind::flow_begin) flows[e.value].first = &e;
    else if (e.kind == Kind::flow_end) flows[e.value].second = &e;
  std::erase_if(flows, [&](const auto& flow) {
    const auto [from, to] = flow.second;
    return !from || !to || us(from->ns) < picture.begin || us(to->ns) > picture.end;
  });
  const auto step = (flows.size() + kMostArrows - 1) / kMostArrows;
  if (step > 1) notes.push_back(fmt::format("1 of {} arrows is drawn", step));
  std::size_t next = 0;
  for (const auto& [number, flow] : flows)
    if (const auto [from, to] = flow; next++ % step == 0)
      picture.arrows.push_back({place[from->lane.value], us(from->ns), place[to->lane.value], us(to->ns),
                                packets.lanes[to->lane.value].row_at(to->ns).value_or(0)});
}

/// The lanes of a trace, below those that the picture has.
void add_timeline(const Titled& of, const detail::Bars& packets, Lanes& picture, std::vector<std::string>& notes) {
  const auto& t = *of.trace;
  const auto before = picture.lanes.size();
  const auto place = add_lanes(t.lanes, picture);
  if (t.lost != 0) notes.push_back(fmt::format("{} events were lost", t.lost));
  if (auto note = TimelineBars(t, packets, picture, place).add(); !note.empty()) notes.push_back(std::move(note));
  add_arrows(t, packets, picture, place, notes);
  const auto first = std::find_if(picture.lanes.begin() + static_cast<std::ptrdiff_t>(before), picture.lanes.end(),
                                  [](const auto& lane) { return !lane.bars.empty(); });
  if (first != picture.lanes.end()) first->heading = of.title;
}

}  // namespace

Trace of_gpus(Trace t, std::span<const std::uint32_t> gpus) {
  const auto named = [&](std::string_view place) {
    return std::any_of(gpus.begin(), gpus.end(), [&](auto g) { return place == fmt::format("gpu{}", g); });
  };
  std::vector<bool> keep;
  for (const auto& l : t.lanes) {
    const auto arrow = l.name.find("->");
    keep.push_back(named(l.group) || !l.group.starts_with("gpu"));
    if (l.group == "links")
      keep.back() = arrow == l.name.npos || named(l.name.substr(0, arrow)) || named(l.name.substr(arrow + 2));
  }
  std::erase_if(t.events, [&](const Event& e) { return e.lane.value < keep.size() && !keep[e.lane.value]; });
  return t;
}

std::string timeline_svg(const Trace& t, const TimelineOptions& o) {
  const Titled one{.trace = &t};
  return timelines_svg({&one, 1}, o);
}

std::string timelines_svg(std::span<const Titled> all, const TimelineOptions& o) {
  Lanes picture{.title = o.title.empty() ? "timeline" : o.title,
                .arrows_are = "from trigger to completion",
                .width = o.width,
                .height = o.height};
  for (const auto& [key, packet] : kKeys) picture.keys.push_back({key, colour(packet)});
  std::vector<detail::Bars> packets;
  packets.reserve(all.size());
  for (const auto& each : all) packets.emplace_back(*each.trace);
  if (!all.empty() && (o.begin_ns != 0 || o.end_ns != 0)) {
    const auto first = static_cast<double>(packets.front().first);
    picture.begin = (o.begin_ns - first) / 1e3, picture.end = (o.end_ns - first) / 1e3;
  } else {
    for (const auto& p : packets)
      picture.end = std::max(picture.end, (static_cast<double>(p.last) - static_cast<double>(p.first)) / 1e3);
  }
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < all.size(); ++i) add_timeline(all[i], packets[i], picture, notes);
  for (const auto& note : notes) picture.note += (picture.note.empty() ? "" : ", ") + note;
  return lanes_svg(picture);
}

}}}  // namespace sdma::v0_3::trace
