// SPDX-License-Identifier: MIT
#pragma once
// Packets and actions as bars in rows, the first step of every picture of a trace. Internal.
//
//   const Bars b(trace);
//   for (const auto& bar : b.lanes[lane].bars) draw(bar.row, bar.from, bar.to);
//
// An end matches the last beginning with the same position, so packets of an indirect buffer may have the position of
// the ring's packet. A packet without an end lasts until the end of the trace. Bars of a lane that overlap go to
// further rows: nothing is dropped.
#include "sdma/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

/// A packet, or an action of a host thread, from its beginning to its end, in the first free row of its lane.
struct Bar {
  const Event* begin{};
  std::uint64_t from{}, to{};
  bool finished{};
  std::size_t row{};
  std::uint64_t epoch{};  ///< of the packet's queue; 0: not recorded

  bool action() const noexcept { return begin->kind == Kind::action_begin; }
};

struct LaneBars {
  std::vector<Bar> bars{};                         ///< by time of beginning
  std::vector<std::vector<std::size_t>> rows{{}};  ///< indices of bars, each row without overlap

  /// The row of the bar that was running at `ns`; if several were, of the one that began last.
  std::optional<std::size_t> row_at(std::uint64_t ns) const {
    std::optional<std::size_t> best;
    for (const auto& row : rows) {
      const auto behind = std::upper_bound(row.begin(), row.end(), ns,
                                           [&](std::uint64_t t, std::size_t i) { return t < bars[i].from; });
      if (behind == row.begin()) continue;
      const auto i = *std::prev(behind);
      if (bars[i].to >= ns && (!best || bars[i].from > bars[*best].from)) best = i;
    }
    return best ? std::optional(bars[*best].row) : std::nullopt;
  }
};

/// Gives each bar the first row that is free when it begins. A lane may have as many rows as bars, so that no row is
/// searched: rows that become free go to one heap, by number, and rows in use are in another, by the time of their end.
inline void assign_rows(LaneBars& lane) {
  using Used = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Used, std::vector<Used>, std::greater<>> used;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  auto& [bars, rows] = lane;
  for (std::size_t r = 0; r < rows.size(); ++r) free.push(r);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    for (; !used.empty() && used.top().first <= bars[i].from; used.pop()) free.push(used.top().second);
    if (free.empty()) {
      free.push(rows.size());
      rows.emplace_back();
    }
    const auto r = free.top();
    free.pop();
    used.emplace(bars[i].to, r);
    rows[r].push_back(i);
    bars[i].row = r;
  }
}

struct Bars {
  explicit Bars(const Trace& t) : lanes(t.lanes.size()) {
    if (!t.events.empty()) {
      first = t.events.front().ns;
      last = t.events.back().ns;
    }
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>> open;
    constexpr auto kAction = ~std::uint64_t{0};  // no packet begins there, because positions are multiples of 4
    std::vector<std::map<std::uint64_t, std::uint64_t>> epochs(lanes.size());  // by their first position
    for (const auto& e : t.events) {
      auto& bars = lanes[e.lane.value].bars;
      if (e.kind == Kind::packet_begin || e.kind == Kind::action_begin) {
        open[{e.lane.value, e.kind == Kind::action_begin ? kAction : e.position}].push_back(bars.size());
        bars.push_back({&e, e.ns, last, false});
        const auto after = epochs[e.lane.value].upper_bound(e.position);
        if (after != epochs[e.lane.value].begin()) bars.back().epoch = std::prev(after)->second;
      } else if (e.kind == Kind::queue_created) {
        epochs[e.lane.value].clear();  // a later queue of this lane, whose positions begin again
      } else if (e.kind == Kind::epoch) {
        epochs[e.lane.value][e.position] = e.value;
      } else if (e.kind == Kind::packet_end || e.kind == Kind::action_end) {
        const auto found = open.find({e.lane.value, e.kind == Kind::action_end ? kAction : e.position});
        if (found == open.end()) {
          ends.push_back(&e);
          continue;
        }
        auto& b = bars[found->second.back()];
        b.to = e.ns;
        b.finished = true;
        found->second.pop_back();
        if (found->second.empty()) open.erase(found);
      }
    }
    start = last;
    end = first;
    bool any = false;
    for (auto& l : lanes) {
      assign_rows(l);
      for (const auto& b : l.bars) {
        end = std::max(end, b.to);
        if (b.action()) continue;
        any = true;
        start = std::min(start, b.from);
      }
    }
    if (!any) start = first, end = last;
  }

  std::vector<LaneBars> lanes{};     ///< by LaneId
  std::vector<const Event*> ends{};  ///< packet_end events without a beginning
  std::uint64_t first{}, last{};     ///< times of the first and last event, in ns; both 0 without events
  std::uint64_t start{}, end{};  ///< the first packet's beginning and the last end of a bar; without packets, as above
};

}}}  // namespace sdma::v0_3::trace::detail
