// SPDX-License-Identifier: MIT
// Maps the parts of a schedule to lines and columns of its text.
#include "parser.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {

SourceMap::Location SourceMap::packet(std::size_t queue, std::size_t dword) const noexcept {
  if (queue >= packets.size()) return {};
  const auto& all = packets[queue];
  const auto behind = std::upper_bound(all.begin(), all.end(), dword,
                                       [](std::size_t d, const PacketLocation& p) { return d < p.dword; });
  return behind == all.begin() ? Location{} : std::prev(behind)->location;
}

/// Counts the actions before `a`, each before those in its body; true if `a` is one of them.
static bool count_to(const std::vector<Schedule::Action>& all, const Schedule::Action& a, std::size_t& n) noexcept {
  for (const auto& one : all) {
    if (&one == &a) return true;
    ++n;
    if (count_to(one.body, a, n)) return true;
  }
  return false;
}

SourceMap::Location SourceMap::action(const Schedule& s, const Schedule::Action& a) const noexcept {
  const auto all = detail::actors(s);
  for (std::size_t i = 0; i < all.size() && i < actions.size(); ++i)
    if (std::size_t n = 0; count_to(*all[i].actions, a, n) && n < actions[i].size()) return actions[i][n];
  return {};
}

namespace detail {

SourceMap::Location ScheduleParser::location(std::size_t at) {
  if (!options_.map) return {};
  if (auto now = context(); now != map_.contexts.back()) map_.contexts.push_back(std::move(now));
  return {.line = static_cast<std::uint32_t>(at), .context = static_cast<std::uint32_t>(map_.contexts.size() - 1)};
}

void ScheduleParser::finish_map() {
  map_.params = params_;
  const auto count = [&](SourceMap::Location& l) {
    const auto at = l.line;
    l.line = static_cast<std::uint32_t>(source_.line(at));
    l.column = static_cast<std::uint32_t>(source_.column(at));
  };
  for (auto* all : {&map_.buffers, &map_.signals}) std::for_each(all->begin(), all->end(), count);
  map_.actions.insert(map_.actions.end(), kernel_actions_.begin(), kernel_actions_.end());
  for (auto& host : map_.actions) std::for_each(host.begin(), host.end(), count);
  for (auto& queue : map_.packets)
    for (auto& p : queue) count(p.location);
  map_.file = source_.file();
  *options_.map = std::move(map_);
}

}  // namespace detail
}}  // namespace sdma::v0_3
