// SPDX-License-Identifier: MIT
// Finds the ranges of roctx in which a thread called for a copy.
#include "roctx_ranges.hpp"

#include <algorithm>
#include <tuple>

namespace sdma { inline namespace v0_3 { namespace detail {

void RoctxRanges::resolve() {
  const auto is_range = [&](const Record& r) {
    const bool known = r.kind < kinds_.size() && names_.count(r.correlation) != 0;
    return known && r.end > r.begin &&
           (kinds_[r.kind] == "MARKER_CORE_RANGE_API" || kinds_[r.kind] == "MARKER_CORE_API");
  };
  records_.erase(std::remove_if(records_.begin(), records_.end(), [&](const auto& r) { return !is_range(r); }),
                 records_.end());
  ranges_ = records_.size();
  if (!any()) return;
  const auto in_time = [](const Record& a, const Record& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);  // the outer one first
  };
  std::stable_sort(records_.begin(), records_.end(), in_time);
  std::stable_sort(calls_.begin(), calls_.end(), in_time);
  std::vector<const Record*> open;
  auto next = records_.begin();
  for (const auto& c : calls_) {
    for (; next != records_.end() && std::tie(next->thread, next->begin) <= std::tie(c.thread, c.begin); ++next)
      open.push_back(&*next);
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const auto* r) { return r->thread != c.thread || r->end < c.begin; }),
               open.end());
    auto& phase = phases_[c.correlation];
    for (const auto* r : open) phase += (phase.empty() ? "" : " > ") + names_[r->correlation];
  }
}

}}}  // namespace sdma::v0_3::detail
