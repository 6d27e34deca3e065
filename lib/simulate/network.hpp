// SPDX-License-Identifier: MIT
#pragma once
// Flows of bytes that share resources by max-min fairness. Internal.
//
//   Network net;
//   auto link = net.add({.kind = Busy::Kind::link, .name = "link gpu0->gpu1", .rate = 48});
//   auto f = net.start(now, 65536, {{link, 1.0}, {engine, 2.0}});   // each byte of the flow is two bytes of the engine
//   net.end(now, g);
//   net.limit(link, 24);                                            // from now on, it has half of its rate
//   for (auto c : net.settle(now)) push(net.finish(c), c);          // flows whose end has changed
//
// What changes at one moment changes together: call settle once, before time goes on. Progressive filling: all rates
// grow together, and a flow stops growing when one of its resources is full. Only the flows that a change reaches get
// another rate: those of the resources that it touches, and then, for as long as there are any, flows for which it is
// no longer true that they are as fast as alone, or that a resource that they use is full and has no faster flow.
// Times are in ns, rates in bytes/ns.
// No errors.
#include "lanes.hpp"
#include "sdma/simulate/simulate.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class Time> struct Resource {
  Busy::Kind kind{};
  std::string name{};
  Time rate{};
  std::size_t cost = kCosts;  ///< the parameter that `rate` is a multiple of; kCosts: none
  double peak{};              ///< the most demand so far
  // Since `reset`.
  double busy_ns{}, bytes{}, moved{}, since{};  ///< moved: bytes of its flows, without their weights
  double demand{};                              ///< the sum of its flows' rates, each as if it were alone
  /// A flow that uses it now, and bytes of the resource per byte of the flow.
  struct Member {
    std::uint32_t flow{};
    Time weight{};
    // Of a tight resource, what is known of the flow, in one place for all that use it:
    Time rate{};
    bool limited{};  ///< by this resource
  };
  std::vector<Member> flows{};
  double times = 0;    ///< of that parameter; or the rate, if there is none
  bool tight = false;  ///< its flows ask for more than it has
};

template <class Time = double> class Network {
 public:
  using Resource = detail::Resource<Time>;
  struct Use {
    std::uint32_t resource{};
    Time weight{};         ///< bytes of the resource per byte of the flow
    std::uint32_t at = 0;  ///< the network's own: no earlier than where the flow is among those of the resource
  };

  std::uint32_t add(Resource r) {
    resources_.push_back(std::move(r));
    return static_cast<std::uint32_t>(resources_.size() - 1);
  }
  /// `uses` names each resource once.
  std::uint32_t start(const Time& now, const Time& bytes, std::vector<Use> uses) {
    std::uint32_t id;
    if (free_.empty()) {
      id = static_cast<std::uint32_t>(flows_.size());
      flows_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    auto& f = flows_[id];
    f = {.left = bytes, .rate = 0, .alone = 0, .updated = now, .counted = lead(bytes), .uses = std::move(uses)};
    measure(f);
    for (std::size_t k = 0; k < f.uses.size(); ++k) {
      const auto u = f.uses[k];
      auto& r = resources_[u.resource];
      if (r.flows.empty()) r.since = lead(now);
      f.uses[k].at = static_cast<std::uint32_t>(r.flows.size());
      r.flows.push_back({.flow = id, .weight = u.weight});
      if (r.tight) tighten(f, u.resource, true);
      ask(u.resource, lead(u.weight * f.alone));
    }
    began_.push_back(id);
    return id;
  }
  void end(const Time& now, std::uint32_t id) {
    auto& f = flows_[id];
    advance(now, f);
    count(f);
    for (auto& u : f.uses) {
      auto& r = resources_[u.resource];
      r.flows.erase(r.flows.begin() + (&member(u, id) - r.flows.data()));
      ask(u.resource, r.flows.empty() ? -r.demand : -lead(u.weight * f.alone));
      if (r.flows.empty()) r.busy_ns += lead(now) - r.since;
    }
    f.uses.clear();
    free_.push_back(id);
    ended_ = true;
  }
  /// Gives the resource another rate.
  void limit(std::uint32_t resource, const Time& rate) {
    resources_[resource].rate = rate;
    for (const auto& m : resources_[resource].flows) {
      auto& f = flows_[m.flow];
      const auto uses = f.uses;
      for (const auto& u : uses) ask(u.resource, -lead(u.weight * f.alone));
      measure(f);
      for (const auto& u : uses) ask(u.resource, lead(u.weight * f.alone));
      began_.push_back(m.flow);
    }
  }
  /// Has nothing changed since `settle`?
  bool settled() const noexcept { return began_.empty() && !ended_; }
  /// Finds the rates from now on. Returns the flows whose rate has changed, and those that are new.
  const std::vector<std::uint32_t>& settle(const Time& now) {
    changed_.clear();
    joined_.clear();
    crossed_.clear();
    crossings_.clear();
    entered_ = 0;
    places_.resize(resources_.size(), kNone);
    ++mark_;
    for (const auto id : began_) join(id);
    for (const auto r : touched_)
      for (const auto& m : resources_[r].flows) join(m.flow);
    do fill();
    while (widen());
    for (const auto& j : joined_) take(now, j);
    for (const auto& c : crossed_) places_[c.resource] = kNone;
    began_.clear();
    touched_.clear();
    ended_ = false;
    return changed_;
  }
  /// No flow, and the rates that follow from these parameters.
  void restart(const std::array<Time, kCosts>& costs) {
    for (auto& r : resources_) {
      r.rate = r.cost < kCosts ? r.times * costs[r.cost] : Time{r.times};
      r.peak = r.busy_ns = r.bytes = r.moved = r.since = r.demand = 0;
      r.flows.clear();
      r.tight = false;
    }
    flows_.clear();
    free_.clear();
    began_.clear();
    touched_.clear();
    ended_ = false;
    strayed_ = Time{};
  }

  /// When the flow ends, if nothing changes.
  Time finish(std::uint32_t flow) const noexcept {
    return flows_[flow].updated + flows_[flow].left / flows_[flow].rate;
  }
  const Time& rate(std::uint32_t flow) const noexcept { return flows_[flow].rate; }
  /// The rate that the flow would have alone.
  const Time& alone(std::uint32_t flow) const noexcept { return flows_[flow].alone; }
  /// The resource that limits the flow's rate.
  std::uint32_t bound(std::uint32_t flow) const noexcept { return flows_[flow].bound; }

  std::vector<Resource>& resources() noexcept { return resources_; }
  const std::vector<Resource>& resources() const noexcept { return resources_; }
  /// By how much the order of what changes a flow's rate, and of its end, has been another one in each lane.
  const Time& strayed() const noexcept { return strayed_; }
  /// Brings `bytes` and `busy_ns` of everything to `now`; `reset` then sets them to zero.
  void account(const Time& now, bool reset) noexcept {
    for (auto& f : flows_)
      if (!f.uses.empty()) advance(now, f), count(f);
    for (auto& r : resources_) {
      if (!r.flows.empty()) r.busy_ns += lead(now) - r.since, r.since = lead(now);
      if (reset) r.busy_ns = 0, r.bytes = 0, r.moved = 0;
    }
  }

 private:
  struct Flow {
    Time left{}, rate{}, alone{}, updated{};
    double counted{};            ///< what was left when `count` last added to its resources
    std::vector<Use> uses{};     ///< those of tight resources first
    std::uint32_t tight{};       ///< how many these are
    std::uint32_t bound{};       ///< the last resource that has limited its rate
    std::uint32_t full = kNone;  ///< the one that limits it now, where no flow is faster; kNone: it is as if alone
    std::uint32_t mark{};        ///< the last settling that included this flow
  };
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr double kSlack = 1 + 1e-9, kEqual = 1e-12, kNever = std::numeric_limits<double>::infinity();
  void advance(const Time& now, Flow& f) noexcept {
    f.left -= lower(f.left, f.rate * (now - f.updated));
    f.updated = now;
  }
  /// Adds to its resources what the flow has moved: not whenever its rate changes, which is often.
  void count(Flow& f) noexcept {
    const auto moved = std::exchange(f.counted, lead(f.left)) - lead(f.left);
    for (const auto& u : f.uses) {
      resources_[u.resource].bytes += lead(u.weight) * moved;
      resources_[u.resource].moved += moved;
    }
  }
  /// The flows of the resource ask for more now, or for less.
  void ask(std::uint32_t resource, double more) {
    auto& r = resources_[resource];
    r.demand += more;
    if (more > 0) r.peak = std::max(r.peak, r.demand);
    const bool was = std::exchange(r.tight, r.demand > lead(r.rate) * kSlack);
    if (was || r.tight) touched_.push_back(resource);
    if (was == r.tight) return;
    for (auto& m : r.flows) {
      auto& f = flows_[m.flow];
      tighten(f, resource, r.tight);
      m.rate = f.rate;
      m.limited = f.full == resource;
    }
  }
  /// What the resource knows of the flow. Those before it may have ended since it was last found.
  typename Resource::Member& member(Use& u, std::uint32_t flow) noexcept {
    auto& all = resources_[u.resource].flows;
    u.at = std::min(u.at, static_cast<std::uint32_t>(all.size() - 1));
    while (all[u.at].flow != flow) --u.at;
    return all[u.at];
  }
  static void tighten(Flow& f, std::uint32_t resource, bool tight) noexcept {
    const auto use = std::find_if(f.uses.begin(), f.uses.end(), [&](const Use& u) { return u.resource == resource; });
    std::swap(*use, f.uses[tight ? f.tight++ : --f.tight]);
  }
  /// Finds the rate that the flow would have alone.
  void measure(Flow& f) noexcept {
    f.alone = std::numeric_limits<double>::infinity();
    for (const auto& u : f.uses) {
      const auto rate = resources_[u.resource].rate / u.weight;
      if (rate < f.alone) f.bound = u.resource;
      f.alone = lower(f.alone, rate);
    }
  }
  /// A flow whose rate is found anew, and which of `crossings_` are its.
  struct Joined {
    Time alone{}, rate{};
    std::uint32_t flow{}, begin{}, end{}, full{};
    bool fixed{};
  };
  /// A use of a tight resource by such a flow.
  struct Crossing {
    std::uint32_t crossed{}, joined{};
    Time weight{};
    std::uint32_t next = kNone;  ///< of the same resource
  };
  /// A tight resource of such flows.
  struct Crossed {
    std::uint32_t resource{};
    std::uint32_t first = kNone, last = kNone;  ///< its crossings
    std::uint32_t uses{};                       ///< how many these are
    Time base{};                                ///< its rate, without that of flows that have not joined
    Time weights{};                             ///< of the crossings
    double highest{};                           ///< the rate of the fastest of all its flows, before
    double lowest{};                            ///< that of the slowest of those that it limited
    // In one filling:
    std::uint32_t open{};  ///< how many of them have no rate yet
    Time left{};           ///< of its rate
    Time weight{};         ///< of these
    double fastest{};      ///< of those that have a rate
    double level{};        ///< of those that it limits
    Time fair() const noexcept { return left / weight; }
  };
  /// When a resource may be full: never later than `fair` says, which only grows.
  struct Full {
    double fair{};
    std::uint32_t crossed{};
    bool operator<(const Full& o) const noexcept { return fair != o.fair ? fair > o.fair : crossed > o.crossed; }
  };
  void join(std::uint32_t id) {
    auto& f = flows_[id];
    if (f.mark == mark_ || f.uses.empty()) return;
    f.mark = mark_;
    joined_.push_back({.alone = f.alone, .rate = 0, .flow = id});
  }
  /// The tight resources of the flows that have joined, and what the others leave of them. Most are known from the
  /// last time.
  void cross() {
    for (; entered_ < joined_.size(); ++entered_) {
      auto& j = joined_[entered_];
      const auto& f = flows_[j.flow];
      j.begin = static_cast<std::uint32_t>(crossings_.size());
      for (std::uint32_t k = 0; k < f.tight; ++k) {
        const auto& u = f.uses[k];
        auto& place = places_[u.resource];
        if (place == kNone) place = crosses(u.resource);
        auto& c = crossed_[place];
        c.base += u.weight * f.rate;
        const auto at = static_cast<std::uint32_t>(crossings_.size());
        (c.first == kNone ? c.first : crossings_[c.last].next) = at;
        c.last = at;
        ++c.uses;
        c.weights += u.weight;
        crossings_.push_back({place, entered_, u.weight});
      }
      j.end = static_cast<std::uint32_t>(crossings_.size());
    }
    for (auto& j : joined_) j.fixed = false;
    for (auto& c : crossed_) {
      c.left = c.base;
      c.open = c.uses;
      c.weight = c.weights;
      c.fastest = 0;
      c.level = std::numeric_limits<double>::infinity();
    }
  }
  std::uint32_t crosses(std::uint32_t resource) {
    auto& c = crossed_.emplace_back();
    c.resource = resource;
    const auto& r = resources_[resource];
    c.base = r.rate;
    c.lowest = std::numeric_limits<double>::infinity();
    for (const auto& m : r.flows) {
      c.base -= m.weight * m.rate;
      c.highest = std::max(c.highest, lead(m.rate));
      if (m.limited) c.lowest = std::min(c.lowest, lead(m.rate));
    }
    return static_cast<std::uint32_t>(crossed_.size() - 1);
  }
  void fix(Joined& j, const Time& rate, std::uint32_t full) {
    j.fixed = true;
    j.rate = rate;
    j.full = full;
    for (auto k = j.begin; k < j.end; ++k) {
      auto& c = crossed_[crossings_[k].crossed];
      c.left -= rate * crossings_[k].weight;
      c.weight -= crossings_[k].weight;
      c.fastest = std::max(c.fastest, lead(rate));
      --c.open;
    }
  }
  /// The rate of a flow that is as fast as alone: in the other lanes, a resource may be full.
  Time unlimited(const Joined& j) const {
    if constexpr (std::is_same_v<Time, double>) return j.alone;
    auto rate = j.alone;
    for (auto k = j.begin; k < j.end; ++k) rate = lower(rate, crossed_[crossings_[k].crossed].fair());
    return led(rate, lead(j.alone));
  }
  /// The least rate at which a resource is full.
  double least() {
    while (!full_.empty()) {
      const auto [fair, i] = full_.front();
      const auto& c = crossed_[i];
      if (c.open > 0 && lead(c.fair()) <= fair) return fair;
      std::pop_heap(full_.begin(), full_.end());
      if (c.open == 0) full_.pop_back();
      else full_.back().fair = lead(c.fair()), std::push_heap(full_.begin(), full_.end());
    }
    return std::numeric_limits<double>::infinity();
  }
  /// Finds the rates of the flows that have joined, while all others keep theirs.
  void fill() {
    cross();
    full_.clear();
    for (std::uint32_t i = 0; i < crossed_.size(); ++i) full_.push_back({lead(crossed_[i].fair()), i});
    std::make_heap(full_.begin(), full_.end());
    // The flows come in the order of the rates that they would have alone.
    order_.resize(joined_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    const auto slower = [&](std::uint32_t a, std::uint32_t b) { return joined_[a].alone < joined_[b].alone; };
    if (!std::is_sorted(order_.begin(), order_.end(), slower)) std::stable_sort(order_.begin(), order_.end(), slower);
    for (auto next = order_.begin(); next != order_.end();) {
      auto& j = joined_[*next];
      if (j.fixed) {
        ++next;
        continue;
      }
      const auto rate = least();
      if (lead(j.alone) <= rate * kSlack) {
        fix(j, unlimited(j), kNone);
        continue;
      }
      auto& c = crossed_[full_.front().crossed];
      c.level = rate;
      const auto level = c.fair();
      for (auto k = c.first; k != kNone; k = crossings_[k].next)
        if (auto& open = joined_[crossings_[k].joined]; !open.fixed)
          fix(open, led(lower(level, open.alone), rate), c.resource);
    }
  }
  /// The rates are right if each flow is as fast as alone, or no flow is faster in a full resource that it uses. Other
  /// flows for which that does not hold any more join. False: there is none.
  bool widen() {
    const auto joined = joined_.size();
    for (const auto& c : crossed_) {
      const bool full = lead(c.left) <= lead(resources_[c.resource].rate) * kEqual;
      const auto most = c.level * (1 + kEqual), least = full ? c.fastest * (1 - kEqual) : kNever;
      if (c.highest <= most && c.lowest >= least) continue;
      for (const auto& m : resources_[c.resource].flows)
        if (lead(m.rate) > most || (m.limited && lead(m.rate) < least)) join(m.flow);
    }
    return joined_.size() > joined;
  }
  void take(const Time& now, const Joined& j) {
    auto& f = flows_[j.flow];
    const bool same = rounded(j.rate, f.rate);
    if (!same || f.full != j.full) {
      for (std::uint32_t k = 0; k < f.tight; ++k) {
        auto& m = member(f.uses[k], j.flow);
        m.rate = j.rate;
        m.limited = j.full == f.uses[k].resource;
      }
    }
    f.full = j.full;
    if (j.full != kNone) f.bound = j.full;
    if (same) return;
    if constexpr (!std::is_same_v<Time, double>)
      if (f.rate > 0) strayed_ = higher(strayed_, higher(f.updated - now, now - f.updated - f.left / f.rate));
    if (f.rate > 0) advance(now, f);  // a flow that is new has begun in each lane at its own time
    f.rate = j.rate;
    changed_.push_back(j.flow);
  }

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, changed_;
  std::vector<std::uint32_t> began_;    ///< flows since `settle`
  std::vector<std::uint32_t> touched_;  ///< tight resources for which the demand has changed since then
  Time strayed_{};
  bool ended_ = false;  ///< has a flow, since then?
  std::vector<Joined> joined_;
  std::vector<std::uint32_t> order_;  ///< of these
  std::vector<Crossed> crossed_;
  std::vector<Crossing> crossings_;
  std::uint32_t entered_ = 0;          ///< how many of `joined_` have their crossings
  std::vector<Full> full_;             ///< a heap
  std::vector<std::uint32_t> places_;  ///< of each resource in `crossed_`; kNone between settlings
  std::uint32_t mark_ = 0;
};

}}}  // namespace sdma::v0_3::detail
