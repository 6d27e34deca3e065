// SPDX-License-Identifier: MIT
#pragma once
// The critical path: from the end of a round backwards, always to what was waited for.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
/// A kind of step: what it does, and the kind of work that the time is counted as.
struct StepKind {
  std::string_view text, work;
};
// In the order of What.
inline constexpr StepKind kStepKinds[] = {
    {"waits to begin", "the latency of copies"},
    {"builds {count} packets of {queue}", "the host thread, which builds packets and rings doorbells"},
    {"rings the doorbell of {queue}", "the host thread, which builds packets and rings doorbells"},
    {"stores a trigger", "engines that re-read a polled word"},
    {"checks a word", "the host's side of completions, one after another"},
    {"computes", "compute"},
    {"loads or stores bytes", "the rate of memory"},
    {"releases its stores", "compute"},
    {"doorbell seen, ring fetched: {queue}", "doorbells and fetches in flight"},
    {"sees the word that is polled: {queue}", "engines that re-read a polled word"},
    {"reads a condition or an indirect buffer: {queue}", "doorbells and fetches in flight"},
    {"front end: {queue}", "the front end of {where}"},
    {"waits for room: {queue}", "the latency of copies"},
    {"moves {size} of {queue}", "the rate of {where}"},
    {"{size} of {queue} in flight", "the latency of copies"},
    {"completion leaves and arrives: {queue}", "completions in flight"},
    {"completions on one word take turns: {queue}", "the host's side of completions, one after another"},
};
static_assert(std::size(kStepKinds) == static_cast<std::size_t>(What::atomics) + 1);

/// The path as a lane of the trace, because nothing else in it says what a step waited for.
inline void record(const std::vector<PathStep>& path, trace::Recorder& out) {
  const auto lane = out.lane("critical path", "last round");
  const auto ns = [](double t) { return static_cast<std::uint64_t>(t + 0.5); };
  for (const auto& step : path) {
    if (ns(step.begin_ns) == ns(step.end_ns)) continue;
    out.action_begin(lane, ns(step.begin_ns),
                     out.text(fmt::format("{}: {}: {}", name(step.phase), step.where, step.what)));
    out.action_end(lane, ns(step.end_ns));
  }
}

template <class Time> void World<Time>::path(Simulation& r) {
  const auto begin = rounds_.back().begin;
  auto end = rounds_.back().end;
  times_.ns = end - begin;
  times_.strayed = higher(times_.strayed, net_.strayed());
  // The bottleneck is named after the kind of work that takes most of the time.
  std::map<std::string, double> spent;
  // The first node began with the simulation: its step takes all that is left.
  for (auto at = end_node_; end > begin; at = nodes_[at].cause) {
    const auto& n = nodes_[at];
    const auto from = at == 0 ? begin : higher(begin, lower(end, nodes_[n.cause].t));
    times_.phase_ns[static_cast<std::size_t>(n.phase)] += end - from;
    if (const auto until = lead(std::exchange(end, from)), since = lead(from); since < until) {
      r.phase_ns[static_cast<std::size_t>(n.phase)] += until - since;
      if (n.what == What::moves || n.what == What::computes) r.working_ns += until - since;
      if (times_alone_) continue;
      const auto& step = kStepKinds[static_cast<std::size_t>(n.what)];
      const auto text = [&](std::string_view form) {
        return fmt::format(fmt::runtime(form), fmt::arg("where", names_[n.where]), fmt::arg("count", n.count),
                           fmt::arg("queue", n.queue < programs_.size() ? programs_[n.queue].name : ""),
                           fmt::arg("size", size_text(n.count)));
      };
      r.path.push_back({since, until, n.phase, names_[n.where], text(step.text)});
      spent[text(step.work)] += until - since;
    }
  }
  std::reverse(r.path.begin(), r.path.end());
  if (o_.recorder) record(r.path, *o_.recorder);
  double most = 0;
  for (const auto& [name, t] : spent)
    if (t > most) most = t, r.bottleneck = name;
  if (most > 0) r.bottleneck += fmt::format(" ({:.0f} % of the time)", 100 * most / r.ns);
}

template <class Time> Simulation World<Time>::result() {
  auto r = std::move(totals_);
  r.total_ns = lead(now_);
  r.steps = steps_.limit() - steps_.left();
  r.pattern = pattern_of_.pattern();
  if (round_.unended()) {
    end_node_ = last_node_;
    for (const auto& t : threads_)
      if (nodes_[t.node].t > nodes_[end_node_].t) end_node_ = t.node;
    round_.ended(nodes_[end_node_].t);
    snapshot();
  }
  if (round_.complete()) rounds_.push_back({round_.last()->begin, round_.last()->end});
  for (const auto& round : rounds_) r.rounds.push_back({lead(round.begin), lead(round.end)});
  if (r.rounds.empty()) return r;
  r.ns = r.rounds.back().end_ns - r.rounds.back().begin_ns;
  r.busy = std::move(busy_);
  r.activity = activity(r.ns);
  path(r);
  const auto all = actors(s_);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kernel()) too_fast(threads_[i], *all[i].actions, r);
  if (o_.contents) expectations(r);
  return r;
}

}}}  // namespace sdma::v0_3::detail
