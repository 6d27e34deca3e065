// The critical path: from the end of a round backwards, always to what was waited for.
#include "world.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sdma {
inline namespace v0 {

std::string_view name(Phase p) noexcept {
  constexpr std::string_view kNames[] = {"control", "schedule", "copy", "sync", "compute"};
  return kNames[static_cast<std::size_t>(p)];
}

namespace detail {

std::string World::what(const Node& n) const {
  const auto queue = n.queue < programs_.size() ? programs_[n.queue].name : "";
  switch (n.what) {
    case What::begin: return "waits to begin";
    case What::builds: return fmt::format("builds {} packets of {}", n.count, queue);
    case What::rings: return "rings the doorbell of " + queue;
    case What::sets: return "stores a trigger";
    case What::looks: return "checks a word";
    case What::computes: return "computes";
    case What::releases_kernel: return "releases its stores";
    case What::fetches: return "doorbell seen, ring fetched: " + queue;
    case What::polls: return "sees the word that is polled: " + queue;
    case What::reads: return "reads a condition or an indirect buffer: " + queue;
    case What::front_end: return "front end: " + queue;
    case What::room: return "waits for room: " + queue;
    case What::turn: return "waits for its turn: " + queue;
    case What::moves: return fmt::format("moves {} of {}", size_text(n.count), queue);
    case What::lands: return fmt::format("{} of {} in flight", size_text(n.count), queue);
    case What::releases: return "completion leaves and arrives: " + queue;
    case What::atomics: return "completions on one word take turns: " + queue;
  }
  return "";
}

void World::path(Simulation& r) const {
  const auto begin = r.rounds.back().begin_ns;
  auto end = r.rounds.back().end_ns;
  // The bottleneck is named after the kind of work that takes most of the time.
  std::map<std::string, double> spent;
  for (auto at = end_node_; end > begin; at = nodes_[at].cause) {
    const auto& n = nodes_[at];
    const auto from = at == 0 ? begin : std::max(begin, std::min(end, nodes_[n.cause].t));
    if (from < end) {
      r.phase_ns[static_cast<std::size_t>(n.phase)] += end - from;
      r.path.push_back({from, end, n.phase, names_[n.where], what(n)});
      const auto t = end - from;
      switch (n.what) {
        case What::builds:
        case What::rings: spent["the host thread, which builds packets and rings doorbells"] += t; break;
        case What::sets:
        case What::polls: spent["engines that re-read a polled word"] += t; break;
        case What::looks:
        case What::atomics: spent["the host's side of completions, one after another"] += t; break;
        case What::computes:
        case What::releases_kernel: spent["compute"] += t; break;
        case What::fetches:
        case What::reads: spent["doorbells and fetches in flight"] += t; break;
        case What::front_end: spent["the front end of " + names_[n.where]] += t; break;
        case What::moves: spent["the rate of " + names_[n.where]] += t; break;
        case What::room:
        case What::turn:
        case What::begin:
        case What::lands: spent["the latency of copies"] += t; break;
        case What::releases: spent["completions in flight"] += t; break;
      }
      end = from;
    }
    if (at == 0) break;
  }
  std::reverse(r.path.begin(), r.path.end());
  double most = 0;
  for (const auto& [name, t] : spent)
    if (t > most) most = t, r.bottleneck = name;
  if (most > 0) r.bottleneck += fmt::format(" ({:.0f} % of the time)", 100 * most / r.ns);
}

Simulation World::result() {
  auto r = std::move(totals_);
  r.total_ns = now_;
  for (const auto& t : threads_)
    if (t.agent) waited_ = false;  // kernels continue after the last wait, so everything is one round
  if (waited_) {
    rounds_.push_back({begin_, end_});
  } else if (open_) {
    end_ = now_;
    end_node_ = last_node_;
    for (const auto& t : threads_)
      if (nodes_[t.node].t > nodes_[end_node_].t) end_node_ = t.node;
    end_ = nodes_[end_node_].t;
    snapshot();
    rounds_.push_back({begin_, end_});
  }
  r.rounds = std::move(rounds_);
  if (r.rounds.empty()) return r;
  r.ns = r.rounds.back().end_ns - r.rounds.back().begin_ns;
  r.busy = std::move(busy_);
  path(r);
  if (o_.contents) expectations(r);
  return r;
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
