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
// that are connected by resources that could be full are recomputed, so unrelated copies cost each other nothing. Times
// are in ns, rates in bytes/ns. No errors.
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
  // Since `reset`.
  double busy_ns{}, bytes{}, since{};
  double demand{};                     ///< the sum of its flows' rates, each as if it were alone
  std::vector<std::uint32_t> flows{};  ///< flows that use it now
  // Temporary: used by fill.
  double left{}, weight{};  ///< of its rate; of its flows that have no rate yet
  std::uint32_t open{};     ///< how many these are
  std::uint32_t mark{};     ///< the last fill in which it could be full
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
      r.demand += u.weight * f.alone;
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
      for (const auto& u : f.uses) resources_[u.resource].demand += u.weight * f.alone;
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
  /// Brings `bytes` and `busy_ns` of everything to `now`; `reset` then sets them to zero.
  void account(double now, bool reset) noexcept {
    for (auto& f : flows_)
      if (!f.uses.empty()) advance(now, f);
    for (auto& r : resources_) {
      if (!r.flows.empty()) r.busy_ns += now - r.since, r.since = now;
      if (reset) r.busy_ns = 0, r.bytes = 0;
    }
  }

 private:
  struct Flow {
    double left{}, rate{}, alone{}, updated{};
    std::vector<Use> uses{};
    std::uint32_t bound{};
    std::uint32_t mark{};  ///< the last fill that included this flow
    bool fixed{};
  };
  static constexpr double kSlack = 1 + 1e-9;
  void advance(double now, Flow& f) noexcept {
    const auto moved = std::min(f.left, f.rate * (now - f.updated));
    f.left -= moved;
    f.updated = now;
    for (const auto& u : f.uses) resources_[u.resource].bytes += moved * u.weight;
  }
  /// Finds the rate that the flow would have alone.
  void measure(Flow& f) noexcept {
    f.alone = std::numeric_limits<double>::infinity();
    for (const auto& u : f.uses)
      if (const auto rate = resources_[u.resource].rate / u.weight; rate < f.alone)
        f.alone = rate, f.bound = u.resource;
  }
  void fill(double now, std::span<const Use> from) {
    changed_.clear();
    joined_.clear();
    crossed_.clear();
    ++mark_;
    const auto join = [&](std::uint32_t resource) {
      for (const auto id : resources_[resource].flows)
        if (flows_[id].mark != mark_) flows_[id].mark = mark_, flows_[id].fixed = false, joined_.push_back(id);
    };
    for (const auto& u : from) join(u.resource);
    for (std::size_t i = 0; i < joined_.size(); ++i)
      for (const auto& u : flows_[joined_[i]].uses) {
        auto& r = resources_[u.resource];
        if (r.mark == mark_ || r.demand <= r.rate * kSlack) continue;
        r.mark = mark_;
        r.left = r.rate;
        r.open = 0;
        r.weight = 0;
        crossed_.push_back(u.resource);
        join(u.resource);
      }
    for (const auto id : joined_)
      for (const auto& u : flows_[id].uses) ++resources_[u.resource].open, resources_[u.resource].weight += u.weight;
    const auto fix = [&](std::uint32_t id, double rate, std::uint32_t bound) {
      auto& f = flows_[id];
      f.fixed = true;
      for (const auto& u : f.uses) {
        auto& r = resources_[u.resource];
        r.left -= rate * u.weight;
        r.weight -= u.weight;
        --r.open;
      }
      if (bound != ~0u) f.bound = bound;
      if (rate == f.rate) return;
      advance(now, f);
      f.rate = rate;
      changed_.push_back(id);
    };
    // The least rate at which a resource is full, or a flow reaches the rate that it would have alone. The flows come
    // in the order of the latter.
    std::stable_sort(joined_.begin(), joined_.end(), [&](auto a, auto b) { return flows_[a].alone < flows_[b].alone; });
    for (auto next = joined_.begin(); next != joined_.end();) {
      if (flows_[*next].fixed) {
        ++next;
        continue;
      }
      double least = std::numeric_limits<double>::infinity();
      std::uint32_t full = ~0u;
      std::erase_if(crossed_, [&](std::uint32_t r) { return resources_[r].open == 0; });
      for (const auto r : crossed_)
        if (const auto rate = resources_[r].left / resources_[r].weight; rate < least) least = rate, full = r;
      if (flows_[*next].alone <= least * kSlack) {
        for (; next != joined_.end() && flows_[*next].alone <= least * kSlack; ++next)
          if (!flows_[*next].fixed) fix(*next, flows_[*next].alone, ~0u);
        continue;
      }
      for (const auto id : resources_[full].flows)
        if (!flows_[id].fixed) fix(id, least, full);
    }
  }

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, changed_, joined_;
  std::vector<std::uint32_t> crossed_;
  std::uint32_t mark_ = 0;
};

}  // namespace sdma::inline v0::detail
