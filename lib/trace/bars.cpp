#include "bars.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <utility>

namespace sdma::inline v0::trace::detail {
namespace {

/// Gives each bar the first row that is free when it begins. A lane may have as many rows as bars, so that no row is
/// searched: rows that become free go to one heap, by number, and rows in use are in another, by the time of their end.
void assign_rows(LaneBars& lane) {
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

}  // namespace

std::optional<std::size_t> LaneBars::row_at(std::uint64_t ns) const {
  std::optional<std::size_t> best;
  for (const auto& row : rows) {
    const auto behind =
        std::upper_bound(row.begin(), row.end(), ns, [&](std::uint64_t t, std::size_t i) { return t < bars[i].from; });
    if (behind == row.begin()) continue;
    const auto i = *std::prev(behind);
    if (bars[i].to >= ns && (!best || bars[i].from > bars[*best].from)) best = i;
  }
  return best ? std::optional(bars[*best].row) : std::nullopt;
}

Bars::Bars(const Trace& t) : lanes(t.lanes.size()) {
  if (!t.events.empty()) {
    first = t.events.front().ns;
    last = t.events.back().ns;
  }
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>> open;
  for (const auto& e : t.events) {
    auto& bars = lanes[e.lane.value].bars;
    if (e.kind == Kind::packet_begin) {
      open[{e.lane.value, e.position}].push_back(bars.size());
      bars.push_back({&e, e.ns, last, false});
    } else if (e.kind == Kind::packet_end) {
      const auto found = open.find({e.lane.value, e.position});
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
  for (auto& l : lanes) assign_rows(l);
}

}  // namespace sdma::inline v0::trace::detail
