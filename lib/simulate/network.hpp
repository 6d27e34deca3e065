// SPDX-License-Identifier: MIT
#pragma once
// Flows of bytes that share resources by max-min fairness. Internal.
//
//   Network net;
//   auto link = net.add({.kind = Busy::Kind::link, .name = "link gpu0->gpu1", .rate = 48});
//   auto f = net.start(now, 65536, {{link, 1.0}, {engine, 2.0}});   // each byte of the flow is two bytes of the engine
//   for (auto c : net.changed()) push(net.finish(c), c);            // flows whose end has changed
//   net.end(now, f);
//   net.limit(now, link, 24);                                      // from now on, it has half of its rate
//
// Progressive filling: all rates grow together, and a flow stops growing when one of its resources is full. Only flows
// that are connected by resources that could be full are recomputed, so unrelated copies cost each other nothing. What
// fill works on is apart from the rest, because hundreds of flows may be connected. Times are in ns, rates in bytes/ns.
// No errors.
#include "sdma/simulate/simulate.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sdma::inline v0::detail {

struct Resource {
  Busy::Kind kind{};
  std::string name{};
  double rate{};
  std::size_t cost = kCosts;  ///< the parameter that `rate` is a multiple of; kCosts: none
  double peak{};              ///< the most demand so far
  // Since `reset`.
  double busy_ns{}, bytes{}, moved{}, since{};  ///< moved: bytes of its flows, without their weights
  double demand{};                              ///< the sum of its flows' rates, each as if it were alone
  std::vector<std::uint32_t> flows{};           ///< flows that use it now
  // Used by fill.
  std::uint32_t mark{}, place{};  ///< the last fill in which it could be full, and where that has it
};

class Network {
 public:
  struct Use {
    std::uint32_t resource{};
    double weight{};  ///< bytes of the resource per byte of the flow
  };

  std::uint32_t add(Resource r) {
    resources_.push_back(std::move(r));
    return static_cast<std::uint32_t>(resources_.size() - 1);
  }
  std::uint32_t start(double now, double bytes, std::vector<Use> uses) {
    std::uint32_t id;
    if (free_.empty()) {
      id = static_cast<std::uint32_t>(flows_.size());
      flows_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    auto& f = flows_[id];
    f = {.left = bytes, .updated = now, .uses = std::move(uses)};
    measure(f);
    for (const auto& u : f.uses) {
      auto& r = resources_[u.resource];
      if (r.flows.empty()) r.since = now;
      r.flows.push_back(id);
      ask(r, u.weight * f.alone);
    }
    f.rate = f.alone;
    const auto own = f.uses;
    fill(now, own);
    if (std::find(changed_.begin(), changed_.end(), id) == changed_.end()) changed_.push_back(id);
    return id;
  }
  void end(double now, std::uint32_t id) {
    auto& f = flows_[id];
    advance(now, f);
    for (const auto& u : f.uses) {
      auto& r = resources_[u.resource];
      r.flows.erase(std::find(r.flows.begin(), r.flows.end(), id));
      r.demand = r.flows.empty() ? 0 : r.demand - u.weight * f.alone;
      if (r.flows.empty()) r.busy_ns += now - r.since;
    }
    const auto own = std::move(f.uses);
    f.uses.clear();
    free_.push_back(id);
    // Include a resource that was full, even if it no longer can be: its flows are faster now.
    fill(now, own);
  }
  /// Gives the resource another rate.
  void limit(double now, std::uint32_t resource, double rate) {
    resources_[resource].rate = rate;
    changed_.clear();
    std::vector<Use> uses;
    for (const auto id : resources_[resource].flows) {
      auto& f = flows_[id];
      for (const auto& u : f.uses) resources_[u.resource].demand -= u.weight * f.alone;
      measure(f);
      for (const auto& u : f.uses) ask(resources_[u.resource], u.weight * f.alone);
      uses.insert(uses.end(), f.uses.begin(), f.uses.end());
    }
    if (!uses.empty()) fill(now, uses);
  }

  /// When the flow ends, if nothing changes.
  double finish(std::uint32_t flow) const noexcept {
    return flows_[flow].updated + flows_[flow].left / flows_[flow].rate;
  }
  /// The resource that limits the flow's rate.
  std::uint32_t bound(std::uint32_t flow) const noexcept { return flows_[flow].bound; }
  /// Flows whose rate was changed by the last start or end.
  const std::vector<std::uint32_t>& changed() const noexcept { return changed_; }

  std::vector<Resource>& resources() noexcept { return resources_; }
  const std::vector<Resource>& resources() const noexcept { return resources_; }
  /// Brings `bytes` and `busy_ns` of everything to `now`; `reset` then sets them to zero.
  void account(double now, bool reset) noexcept {
    for (auto& f : flows_)
      if (!f.uses.empty()) advance(now, f);
    for (auto& r : resources_) {
      if (!r.flows.empty()) r.busy_ns += now - r.since, r.since = now;
      if (reset) r.busy_ns = 0, r.bytes = 0, r.moved = 0;
    }
  }

 private:
  struct Flow {
    double left{}, rate{}, alone{}, updated{};
    std::vector<Use> uses{};
    std::uint32_t bound{};
    std::uint32_t mark{}, joined{};  ///< the last fill that included this flow, and where that has it
    bool fixed{};
  };
  static constexpr double kSlack = 1 + 1e-9;
  void advance(double now, Flow& f) noexcept {
    const auto moved = std::min(f.left, f.rate * (now - f.updated));
    f.left -= moved;
    f.updated = now;
    for (const auto& u : f.uses) {
      resources_[u.resource].bytes += moved * u.weight;
      resources_[u.resource].moved += moved;
    }
  }
  static void ask(Resource& r, double more) noexcept {
    r.demand += more;
    r.peak = std::max(r.peak, r.demand);
  }
  /// Finds the rate that the flow would have alone.
  void measure(Flow& f) noexcept {
    f.alone = std::numeric_limits<double>::infinity();
    for (const auto& u : f.uses)
      if (const auto rate = resources_[u.resource].rate / u.weight; rate < f.alone)
        f.alone = rate, f.bound = u.resource;
  }
  /// A flow that is recomputed, and which of `crossings_` are its.
  struct Joined {
    double alone{};
    std::uint32_t flow{}, begin{}, end{};
  };
  /// A resource that could be full.
  struct Crossed {
    std::uint32_t resource{};
    std::uint32_t open{};  ///< how many of its flows have no rate yet
    double left{};         ///< of its rate
    double weight{};       ///< of these flows
    double fair{};         ///< left / weight
  };
  void fill(double now, std::span<const Use> from) {
    changed_.clear();
    joined_.clear();
    crossed_.clear();
    crossings_.clear();
    ++mark_;
    const auto join = [&](std::uint32_t resource) {
      for (const auto id : resources_[resource].flows)
        if (flows_[id].mark != mark_) {
          flows_[id].mark = mark_;
          flows_[id].fixed = false;
          joined_.push_back({.alone = flows_[id].alone, .flow = id});
        }
    };
    for (const auto& u : from) join(u.resource);
    for (std::size_t i = 0; i < joined_.size(); ++i) {
      joined_[i].begin = static_cast<std::uint32_t>(crossings_.size());
      for (const auto& u : flows_[joined_[i].flow].uses) {
        auto& r = resources_[u.resource];
        if (r.demand <= r.rate * kSlack) continue;
        if (r.mark != mark_) {
          r.mark = mark_;
          r.place = static_cast<std::uint32_t>(crossed_.size());
          crossed_.push_back({.resource = u.resource, .left = r.rate});
          join(u.resource);
        }
        ++crossed_[r.place].open;
        crossed_[r.place].weight += u.weight;
        crossings_.push_back({r.place, u.weight});
      }
      joined_[i].end = static_cast<std::uint32_t>(crossings_.size());
      flows_[joined_[i].flow].joined = static_cast<std::uint32_t>(i);
    }
    for (auto& c : crossed_) c.fair = c.left / c.weight;
    const auto fix = [&](std::uint32_t id, const Joined& j, double rate, std::uint32_t bound) {
      auto& f = flows_[id];
      f.fixed = true;
      for (auto k = j.begin; k < j.end; ++k) {
        auto& c = crossed_[crossings_[k].resource];
        c.left -= rate * crossings_[k].weight;
        c.weight -= crossings_[k].weight;
        c.fair = --c.open == 0 ? std::numeric_limits<double>::infinity() : c.left / c.weight;
      }
      if (bound != ~0u) f.bound = bound;
      if (rate == f.rate) return;
      advance(now, f);
      f.rate = rate;
      changed_.push_back(id);
    };
    // The least rate at which a resource is full, or a flow reaches the rate that it would have alone. The flows come
    // in the order of the latter.
    order_.assign(joined_.begin(), joined_.end());
    const auto slower = [](const Joined& a, const Joined& b) { return a.alone < b.alone; };
    if (!std::is_sorted(order_.begin(), order_.end(), slower)) std::stable_sort(order_.begin(), order_.end(), slower);
    for (auto next = order_.begin(); next != order_.end();) {
      if (flows_[next->flow].fixed) {
        ++next;
        continue;
      }
      double least = std::numeric_limits<double>::infinity();
      std::uint32_t full = ~0u;
      for (const auto& c : crossed_)
        if (c.fair < least) least = c.fair, full = c.resource;
      if (next->alone <= least * kSlack) {
        for (; next != order_.end() && next->alone <= least * kSlack; ++next)
          if (!flows_[next->flow].fixed) fix(next->flow, *next, next->alone, ~0u);
        continue;
      }
      for (const auto id : resources_[full].flows)
        if (!flows_[id].fixed) fix(id, joined_[flows_[id].joined], least, full);
    }
  }

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, changed_;
  std::vector<Joined> joined_, order_;
  std::vector<Crossed> crossed_;
  std::vector<Use> crossings_;  ///< uses of `crossed_`, by their place in it
  std::uint32_t mark_ = 0;
};

}  // namespace sdma::inline v0::detail
