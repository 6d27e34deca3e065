// SPDX-License-Identifier: MIT
// The copies of routes, and the order in which their links could make them.
#include "steps.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

bool is_sum(const Task& t) { return t.collective == Synthesized::reduce_scatter; }

/// The copies of a route: edges nearer to the root first, or last where they lead to it.
struct Edges {
  std::vector<std::uint32_t> order{};  ///< GPUs whose edge it is
  std::vector<std::uint32_t> depth{}, height{};
};
Edges edges_of(const Route& r, const std::vector<std::uint32_t>& parent) {
  Edges out;
  const auto n = r.edge.size();
  out.depth.resize(n);
  out.height.resize(n);
  for (std::uint32_t g = 0; g < n; ++g) {
    if (r.edge[g] == kNoEdge) continue;
    std::uint32_t d = 0;
    for (auto u = g; r.edge[u] != kNoEdge; u = parent[u]) out.height[u] = std::max(out.height[u], d++);
    out.depth[g] = d;
    out.order.push_back(g);
  }
  std::stable_sort(out.order.begin(), out.order.end(), [&](auto a, auto b) { return out.depth[a] < out.depth[b]; });
  return out;
}

}  // namespace

std::vector<Step> steps_of(const Task& t, const Net& net, const Routes& routes, std::uint32_t pieces) {
  const auto parents = [&](const Route& r) {
    std::vector<std::uint32_t> out(r.edge.size());
    for (std::uint32_t g = 0; g < out.size(); ++g)
      if (r.edge[g] != kNoEdge) out[g] = is_sum(t) ? net.edges[r.edge[g]].to : net.edges[r.edge[g]].from;
    return out;
  };
  const auto cut = [&](const Edges& e) {
    return is_sum(t) || std::any_of(e.order.begin(), e.order.end(), [&](auto g) { return e.depth[g] > 1; });
  };
  std::uint64_t longest = 0;
  for (const auto& all : routes)
    for (const auto& r : all)
      if (cut(edges_of(r, parents(r)))) longest = std::max(longest, r.bytes);
  const auto piece = std::max((longest + pieces - 1) / pieces + kGranule - 1, kGranule) / kGranule * kGranule;
  std::vector<Step> out;
  for (std::uint32_t i = 0; i < routes.size(); ++i)
    for (std::uint32_t k = 0; k < routes[i].size(); ++k) {
      const auto& r = routes[i][k];
      const auto parent = parents(r);
      const auto edges = edges_of(r, parent);
      const auto each = cut(edges) ? piece : r.bytes;
      std::uint32_t p = 0;
      for (std::uint64_t at = 0; at < r.bytes; at += each, ++p) {
        std::map<std::uint32_t, std::size_t> made;
        auto order = edges.order;
        if (is_sum(t)) std::reverse(order.begin(), order.end());
        for (const auto g : order) {
          Step s{.item = i,
                 .route = k,
                 .piece = p,
                 .edge = r.edge[g],
                 .begin = r.begin + at,
                 .bytes = std::min(each, r.bytes - at),
                 .left = is_sum(t) ? edges.depth[g] - 1 : edges.height[g]};
          if (!is_sum(t)) {
            if (const auto before = made.find(parent[g]); before != made.end()) s.after = {before->second};
          } else {
            for (const auto& [child, step] : made)
              if (parent[child] == g) s.after.push_back(step);
          }
          made[g] = out.size();
          out.push_back(std::move(s));
        }
      }
    }
  return out;
}

void order(const Task& t, const Net& net, const Routes& routes, std::vector<Step>& steps) {
  const auto& m = *t.machine;
  const auto hop = [&](const NetEdge& e) {
    return m[e.network ? Cost::nic_message : Cost::engine_packet] + m[Cost::engine_poll] +
           (is_sum(t) ? m[Cost::kernel_release] : 0) +
           (e.network ? m[Cost::nic_flight] : m[Cost::engine_latency] + m[Cost::engine_release] + m[Cost::xgmi_flight]);
  };
  const auto busy = busy_ns(net, routes);
  std::vector<double> bytes(net.edges.size()), free(net.edges.size());
  for (const auto& s : steps) bytes[s.edge] += static_cast<double>(s.bytes);
  std::vector<std::vector<std::size_t>> next(steps.size());
  std::vector<std::size_t> waits(steps.size());
  std::vector<double> ready(steps.size());
  const auto first = [&](std::size_t a, std::size_t b) {
    const auto& x = steps[a];
    const auto& y = steps[b];
    return std::tuple(y.left, x.piece, a) < std::tuple(x.left, y.piece, b);
  };
  std::vector<std::set<std::size_t, decltype(first)>> able(net.edges.size(),
                                                           std::set<std::size_t, decltype(first)>(first));
  struct Event {
    double t{};
    std::size_t number{};
    bool step{};  ///< a step is ready; or an edge is free
    /// What becomes ready at the same moment is there before an edge chooses.
    bool operator<(const Event& o) const { return std::tuple(t, !step, number) > std::tuple(o.t, !o.step, o.number); }
  };
  std::priority_queue<Event> events;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    waits[i] = steps[i].after.size();
    for (const auto b : steps[i].after) next[b].push_back(i);
    if (waits[i] == 0) events.push({0, i, true});
  }
  while (!events.empty()) {
    const auto now = events.top();
    events.pop();
    const auto edge = now.step ? steps[now.number].edge : static_cast<std::uint32_t>(now.number);
    if (now.step) {
      able[edge].insert(now.number);
      events.push({now.t, edge, false});
      continue;
    }
    if (free[edge] > now.t || able[edge].empty()) continue;
    const auto i = *able[edge].begin();
    able[edge].erase(able[edge].begin());
    auto& s = steps[i];
    s.start = now.t;
    s.end = free[edge] = now.t + static_cast<double>(s.bytes) * busy[edge] / bytes[edge];
    events.push({s.end, edge, false});
    for (const auto n : next[i]) {
      ready[n] = std::max(ready[n], s.end + hop(net.edges[edge]));
      if (--waits[n] == 0) events.push({ready[n], n, true});
    }
  }
}

}}}  // namespace sdma::v0_3::detail
