// SPDX-License-Identifier: MIT
#include "log_starts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// With how many earlier starts one is compared.
constexpr std::size_t kMostCompared = 8;
using Stamped = std::pair<double, std::string_view>;

/// The lines of both that lie in the time that both have are the same.
bool are_alike(const std::vector<Stamped>& a, const std::vector<Stamped>& b) {
  const auto from = std::max(a.front().first, b.front().first), to = std::min(a.back().first, b.back().first);
  const auto part = [&](const std::vector<Stamped>& all) {
    const auto later = [](double t, const Stamped& s) { return t < s.first; };
    const auto first = std::lower_bound(all.begin(), all.end(), Stamped(from, {}));
    const auto last = std::upper_bound(all.begin(), all.end(), to, later);
    return std::span<const Stamped>(all).subspan(static_cast<std::size_t>(first - all.begin()),
                                                 static_cast<std::size_t>(last - first));
  };
  const auto of_a = part(a), of_b = part(b);
  return of_a.size() >= kLeastAlike && std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

/// How many starts each machine has, and the place of each source's, after some were united.
void number_again(std::vector<LogSource>& sources) {
  std::map<std::string_view, std::set<std::size_t>> starts;  // of each machine: the numbers that are left
  for (const auto& s : sources)
    if (s.records > 0) starts[s.host].insert(s.start);
  std::map<std::pair<std::string_view, std::size_t>, std::size_t> place;
  for (const auto& [host, all] : starts)
    for (std::size_t n = 0; const auto start : all) place[{host, start}] = ++n;
  for (auto& s : sources) {
    if (s.records == 0) continue;
    s.start = place[{s.host, s.start}];
    s.starts = starts[s.host].size();
  }
}

}  // namespace

void unite_starts(std::vector<LogLine>& lines, std::vector<LogSource>& sources) {
  if (sources.size() < 2) return;
  std::vector<std::vector<Stamped>> of(sources.size());
  for (const auto& l : lines)
    if (l.seconds && sources[l.source].boot.empty()) of[l.source].emplace_back(*l.seconds, l.text);
  for (auto& all : of) std::sort(all.begin(), all.end());
  // Only starts that have a line in common are compared.
  std::map<std::tuple<std::string_view, double, std::string_view>, std::size_t> first;
  std::vector<std::size_t> into(sources.size());
  for (std::size_t s = 0; s < into.size(); ++s) {
    into[s] = s;
    std::set<std::size_t> compared;
    for (const auto& [seconds, text] : of[s]) {
      const auto [known, fresh] = first.emplace(std::tuple(std::string_view(sources[s].host), seconds, text), s);
      if (fresh || known->second == s || into[s] != s || compared.size() == kMostCompared) continue;
      if (compared.insert(known->second).second && are_alike(of[known->second], of[s])) into[s] = into[known->second];
    }
  }
  const auto twice = [&](const LogLine& l) {
    if (into[l.source] == l.source || !l.seconds) return false;
    const auto& there = of[into[l.source]];
    return std::binary_search(there.begin(), there.end(), Stamped(*l.seconds, l.text));
  };
  std::erase_if(lines, twice);
  for (auto& l : lines) l.source = into[l.source];
  bool any = false;
  for (std::size_t s = 0; s < into.size(); ++s) {
    if (into[s] == s) continue;
    auto& one = sources[into[s]];
    one.records += std::exchange(sources[s].records, 0);
    one.span.add(sources[s].span);
    any = true;
  }
  if (any) number_again(sources);
}

}}}  // namespace sdma::v0_3::detail
