// Draws a trace: one bar per packet, and arrows from triggers to completions.
#include "bars.hpp"
#include "sdma/draw/lanes.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/trace/write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace sdma::inline v0::trace {
namespace {

constexpr std::size_t kMostBars = 20000;
/// The legend: the meaning of each colour, and a packet that has this colour.
constexpr std::pair<const char*, const char*> kKeys[] = {{"host builds", "host"},
                                                         {"poll", "poll_mem"},
                                                         {"copy", "copy_linear"},
                                                         {"broadcast", "copy_broadcast"},
                                                         {"swap", "copy_swap"},
                                                         {"completion", "atomic"},
                                                         {"other", ""}};

std::string colour(std::string_view packet) {
  if (packet == "copy_broadcast") return "#4e9f50";
  if (packet == "copy_swap") return "#8064a2";
  if (packet.starts_with("copy")) return "#3b78b5";
  if (packet.starts_with("poll")) return "#d0d0d0";
  if (packet == "atomic" || packet == "fence") return "#d9782d";
  if (packet == "host") return "#8c564b";
  return "#999999";
}

std::string_view name_of(const Trace& t, const Event& begin) {
  if (t.lanes[begin.lane.value].group == "host") return "host";
  const auto* info = identify(begin.packet());
  return info ? info->name : "packet";
}

/// Adds the lanes in the picture's order: threads, GPUs, links. Returns the index in the picture for each lane of the trace.
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

}  // namespace

std::string timeline_svg(const Trace& t, const TimelineOptions& o) {
  const detail::Bars packets(t);
  const auto us = [&](auto ns) { return (static_cast<double>(ns) - static_cast<double>(packets.first)) / 1e3; };
  const bool all = o.begin_ns == 0 && o.end_ns == 0;
  Lanes picture{.title = o.title.empty() ? "timeline" : o.title,
                .begin = all ? 0 : us(o.begin_ns),
                .end = all ? us(packets.last) : us(o.end_ns),
                .arrows_are = "from trigger to completion"};
  for (const auto& [key, packet] : kKeys) picture.keys.push_back({key, colour(packet)});
  const auto place = add_lanes(t.lanes, picture);

  std::vector<const detail::Bar*> shown;
  for (const auto& lane : packets.lanes)
    for (const auto& b : lane.bars)
      if (us(b.to) >= picture.begin && us(b.from) <= picture.end) shown.push_back(&b);
  std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->from < b->from; });
  const auto left_out = shown.size() - std::min(shown.size(), kMostBars);
  shown.resize(shown.size() - left_out);
  for (const auto* b : shown) {
    const auto lane = b->begin->lane.value;
    const auto name = name_of(t, *b->begin);
    const auto from = us(b->from), to = us(b->to);
    picture.lanes[place[lane]].bars.push_back(
        {from, to, b->row, colour(name), fmt::format("{} {} {:.3f} to {:.3f} us", name, t.lanes[lane].name, from, to)});
  }

  // At the same time, the end of an arrow may come before its beginning.
  std::map<std::uint64_t, std::pair<const Event*, const Event*>> flows;
  for (const auto& e : t.events)
    if (e.kind == Kind::flow_begin) flows[e.value].first = &e;
    else if (e.kind == Kind::flow_end) flows[e.value].second = &e;
  for (const auto& [number, flow] : flows)
    if (const auto [from, to] = flow; from && to)
      picture.arrows.push_back({place[from->lane.value], us(from->ns), place[to->lane.value], us(to->ns),
                                packets.lanes[to->lane.value].row_at(to->ns).value_or(0)});
  if (t.lost != 0 || left_out != 0)
    picture.note = fmt::format("{} events were lost, {} bars are not drawn", t.lost, left_out);
  return lanes_svg(picture);
}

}  // namespace sdma::inline v0::trace
