// SPDX-License-Identifier: MIT
// Trees for the bytes of a collective: the cheapest for each unit, where full links are dear.
#include "routes.hpp"

#include "../simulate/data_rate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr double kUnreached = std::numeric_limits<double>::infinity();

/// The edges into each GPU of a tree; kNoEdge where it has none.
using Tree = std::vector<std::uint32_t>;

/// How full each edge and each shared path is, in ns.
class Loads {
 public:
  explicit Loads(const Net& net) : net_(net), edges_(net.edges.size()), shared_(net.shared.size()) {}
  void add(const Tree& t, double bytes) {
    for (const auto e : t) {
      if (e == kNoEdge) continue;
      edges_[e] += bytes / net_.edges[e].rate;
      for (const auto s : net_.edges[e].shares) shared_[s] += bytes / net_.shared[s];
    }
  }
  double most() const {
    double out = 0;
    for (const auto x : edges_) out = std::max(out, x);
    for (const auto x : shared_) out = std::max(out, x);
    return out;
  }
  double edge(std::uint32_t e) const { return edges_[e]; }
  double fullest(std::uint32_t e) const {
    auto out = edges_[e];
    for (const auto s : net_.edges[e].shares) out = std::max(out, shared_[s]);
    return out;
  }
  /// What a byte costs on each edge, if `full` is as full as a link may be.
  std::vector<double> prices(double full, double steepness) const {
    const auto price = [&](double x, double rate) { return std::exp(steepness * (x / full - 1)) / rate; };
    std::vector<double> paths, out;
    for (std::size_t s = 0; s < shared_.size(); ++s) paths.push_back(price(shared_[s], net_.shared[s]));
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      out.push_back(price(edges_[e], net_.edges[e].rate));
      for (const auto s : net_.edges[e].shares) out.back() += paths[s];
    }
    // Of ways that cost nearly the same, the one with fewer copies.
    const auto least = 1e-3 * *std::max_element(out.begin(), out.end());
    for (auto& p : out) p += least;
    return out;
  }

 private:
  const Net& net_;
  std::vector<double> edges_, shared_;
};

Tree cheapest_path(const Net& net, const std::vector<double>& price, std::uint32_t from, std::uint32_t to) {
  std::vector<double> cost(net.gpus, kUnreached);
  Tree by(net.gpus, kNoEdge), out(net.gpus, kNoEdge);
  std::vector<bool> done(net.gpus);
  cost[from] = 0;
  for (std::uint32_t i = 0; i < net.gpus; ++i) {
    auto next = net.gpus;
    for (std::uint32_t g = 0; g < net.gpus; ++g)
      if (!done[g] && cost[g] < kUnreached && (next == net.gpus || cost[g] < cost[next])) next = g;
    if (next == net.gpus || next == to) break;
    done[next] = true;
    for (std::uint32_t e = 0; e < net.edges.size(); ++e)
      if (const auto& edge = net.edges[e]; edge.from == next && cost[next] + price[e] < cost[edge.to])
        cost[edge.to] = cost[next] + price[e], by[edge.to] = e;
  }
  for (auto g = to; g != from; g = net.edges[by[g]].from) out[g] = by[g];
  return out;
}

/// The cheapest tree from `root` to all GPUs (Chu and Liu, Edmonds): the cheapest edge into each GPU; the GPUs of a
/// cycle of these become one, and the edge that enters them replaces one of theirs.
class Arborescence {
 public:
  struct Edge {
    std::uint32_t from{}, to{};
    double cost{};
    std::uint32_t of{};  ///< the edge of the caller
  };
  /// Indices of the chosen edges, one for each node but the root.
  static std::vector<std::uint32_t> find(std::uint32_t nodes, std::uint32_t root, const std::vector<Edge>& edges) {
    std::vector<std::uint32_t> into(nodes, kNoEdge);
    for (std::uint32_t i = 0; i < edges.size(); ++i) {
      const auto& e = edges[i];
      if (e.to != root && e.from != e.to && (into[e.to] == kNoEdge || e.cost < edges[into[e.to]].cost)) into[e.to] = i;
    }
    std::vector<std::uint32_t> group(nodes, kNoEdge), seen(nodes, kNoEdge);
    std::uint32_t groups = 0;
    for (std::uint32_t v = 0; v < nodes; ++v) {
      auto u = v;
      while (u != root && group[u] == kNoEdge && seen[u] != v) {
        seen[u] = v;
        u = edges[into[u]].from;
      }
      if (u == root || group[u] != kNoEdge) continue;
      for (auto w = edges[into[u]].from; w != u; w = edges[into[w]].from) group[w] = groups;
      group[u] = groups++;
    }
    if (groups == 0) return chosen(into, root);
    const auto cycles = groups;
    for (auto& g : group)
      if (g == kNoEdge) g = groups++;
    std::vector<Edge> outer;
    for (std::uint32_t i = 0; i < edges.size(); ++i) {
      const auto& e = edges[i];
      if (group[e.from] == group[e.to] || e.to == root) continue;
      outer.push_back({group[e.from], group[e.to], e.cost - (group[e.to] < cycles ? edges[into[e.to]].cost : 0), i});
    }
    for (const auto i : find(groups, group[root], outer)) {
      const auto of = outer[i].of;
      into[edges[of].to] = of;
    }
    return chosen(into, root);
  }

 private:
  static std::vector<std::uint32_t> chosen(const std::vector<std::uint32_t>& into, std::uint32_t root) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t v = 0; v < into.size(); ++v)
      if (v != root) out.push_back(into[v]);
    return out;
  }
};

std::uint32_t depth_of(const Net& net, const Tree& t, std::uint32_t g) {
  std::uint32_t out = 0;
  for (; t[g] != kNoEdge; g = net.edges[t[g]].from) ++out;
  return out;
}

/// Gives GPUs a parent nearer to the root, where that costs hardly more.
void flatten(const Net& net, const std::vector<double>& price, Tree& t) {
  constexpr double kMore = 1.02;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t e = 0; e < net.edges.size(); ++e) {
      const auto& edge = net.edges[e];
      if (t[edge.to] == kNoEdge || t[edge.to] == e || price[e] > kMore * price[t[edge.to]]) continue;
      if (depth_of(net, t, edge.from) + 1 >= depth_of(net, t, edge.to)) continue;
      t[edge.to] = e;
      changed = true;
    }
  }
}

Tree cheapest(const Net& net, const std::vector<double>& price, const Item& item) {
  if (item.to) return cheapest_path(net, price, item.root, *item.to);
  std::vector<Arborescence::Edge> edges;
  for (std::uint32_t e = 0; e < net.edges.size(); ++e)
    edges.push_back({net.edges[e].from, net.edges[e].to, price[e], e});
  Tree out(net.gpus, kNoEdge);
  for (const auto i : Arborescence::find(net.gpus, item.root, edges)) out[edges[i].to] = edges[i].of;
  flatten(net, price, out);
  return out;
}

/// A number of units of an item, and the tree that each of them has.
std::vector<Route> ranges_of(const Item& item, const std::vector<Tree>& units, std::uint64_t granule) {
  std::map<Tree, std::uint64_t> count;
  for (const auto& t : units) ++count[t];
  std::vector<std::pair<std::uint64_t, Tree>> order;
  for (const auto& [t, n] : count) order.emplace_back(n, t);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Route> out;
  std::uint64_t at = 0, before = 0;
  for (const auto& [n, t] : order) {
    before += n;
    auto end = before == units.size() ? item.bytes : item.bytes / units.size() * before / granule * granule;
    end = std::max(end, at);
    if (end > at) out.push_back({t, at, end - at});
    at = end;
  }
  return out;
}

}  // namespace

Net Net::reversed() const {
  auto out = *this;
  for (auto& e : out.edges) std::swap(e.from, e.to);
  return out;
}

Net net_of(const MachineDescription& m, std::uint32_t gpus) {
  Net out{.gpus = gpus};
  for (const auto& s : m.topology.shared) out.shared.push_back(data_rate(m, s.type, s.rate).value_or(1e9));
  std::vector<bool> known(std::size_t{gpus} * gpus);
  for (const auto& l : m.topology.links) {
    if (l.from.kind != LinkEnd::Kind::gpu || l.to.kind != LinkEnd::Kind::gpu) continue;
    const auto from = l.from.index, to = l.to.index;
    const auto rate = data_rate(m, l.type, l.rate);
    if (from >= gpus || to >= gpus || from == to || !rate || known[from * gpus + to]) continue;
    known[from * gpus + to] = true;
    const bool network = m.topology.gpus[from].node != m.topology.gpus[to].node;
    out.edges.push_back({from, to, network ? *rate : std::min(*rate, m[Cost::engine_rate]), l.shares, network});
  }
  return out;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> unreachable(const Net& net) {
  for (std::uint32_t root = 0; root < net.gpus; ++root) {
    std::vector<bool> seen(net.gpus);
    seen[root] = true;
    for (bool more = true; more;) {
      more = false;
      for (const auto& e : net.edges)
        if (seen[e.from] && !seen[e.to]) seen[e.to] = more = true;
    }
    for (std::uint32_t g = 0; g < net.gpus; ++g)
      if (!seen[g]) return std::pair(root, g);
  }
  return {};
}

std::optional<Routes> direct_routes(const Net& net, const std::vector<Item>& items) {
  Routes out;
  for (const auto& i : items) {
    Tree t(net.gpus, kNoEdge);
    for (std::uint32_t e = 0; e < net.edges.size(); ++e)
      if (net.edges[e].from == i.root && (!i.to || *i.to == net.edges[e].to)) t[net.edges[e].to] = e;
    for (std::uint32_t g = 0; g < net.gpus; ++g)
      if (t[g] == kNoEdge && g != i.root && (!i.to || *i.to == g)) return {};
    out.push_back({{t, 0, i.bytes}});
  }
  return out;
}

Routes shortest_routes(const Net& net, const std::vector<Item>& items) {
  Loads loads(net);
  Routes out;
  for (const auto& item : items) {
    std::vector<std::uint32_t> depth(net.gpus, kNoEdge);
    Tree t(net.gpus, kNoEdge);
    depth[item.root] = 0;
    for (std::uint32_t d = 0; d < net.gpus; ++d)
      for (std::uint32_t e = 0; e < net.edges.size(); ++e) {
        const auto& edge = net.edges[e];
        if (depth[edge.from] != d || (depth[edge.to] != kNoEdge && depth[edge.to] != d + 1)) continue;
        depth[edge.to] = d + 1;
        if (t[edge.to] == kNoEdge || loads.fullest(e) < loads.fullest(t[edge.to])) t[edge.to] = e;
      }
    if (item.to) {
      Tree path(net.gpus, kNoEdge);
      for (auto g = *item.to; g != item.root; g = net.edges[t[g]].from) path[g] = t[g];
      t = std::move(path);
    }
    loads.add(t, static_cast<double>(item.bytes));
    out.push_back({{t, 0, item.bytes}});
  }
  return out;
}

Routes balanced_routes(const Net& net, const std::vector<Item>& items, std::uint64_t granule,
                       std::uint64_t most_units) {
  constexpr std::uint64_t kWork = 100'000'000;
  constexpr double kSteepness[] = {4, 6, 8, 12, 16, 24, 32, 48, 64, 64, 96, 96};
  const auto each = std::uint64_t{net.edges.size()} * (items.front().to ? 2 : net.gpus) + net.gpus;
  const auto afford = kWork / (each * items.size() * std::size(kSteepness));
  const auto units = std::max<std::uint64_t>(std::min({afford, items.front().bytes / granule, most_units}), 1);
  Loads loads(net);
  std::vector<std::vector<Tree>> trees(items.size());
  const auto unit_of = [&](const Item& i) { return static_cast<double>(i.bytes) / static_cast<double>(units); };
  double full = 0;
  for (const auto& i : items) full = std::max(full, static_cast<double>(i.bytes));
  auto best = trees;
  auto least = kUnreached;
  bool first = true;
  for (const auto steepness : kSteepness) {
    for (std::uint64_t u = 0; u < units; ++u)
      for (std::size_t i = 0; i < items.size(); ++i) {
        const auto bytes = unit_of(items[i]);
        if (!first) loads.add(trees[i][u], -bytes);
        const auto so_far = loads.most();
        auto t = cheapest(net, loads.prices(std::max(so_far, full * 1e-9), steepness), items[i]);
        loads.add(t, bytes);
        if (first) trees[i].push_back(std::move(t));
        else trees[i][u] = std::move(t);
      }
    first = false;
    if (const auto most = loads.most(); most < least * (1 - 1e-6)) least = most, best = trees;
  }
  Routes out;
  for (std::size_t i = 0; i < items.size(); ++i) out.push_back(ranges_of(items[i], best[i], granule));
  return out;
}

std::vector<double> busy_ns(const Net& net, const Routes& all) {
  Loads loads(net);
  for (const auto& item : all)
    for (const auto& r : item) loads.add(r.edge, static_cast<double>(r.bytes));
  std::vector<double> out;
  for (std::uint32_t e = 0; e < net.edges.size(); ++e) out.push_back(loads.edge(e) > 0 ? loads.fullest(e) : 0);
  return out;
}

}}}  // namespace sdma::v0_3::detail
