// SPDX-License-Identifier: MIT
#include "engine_plan.hpp"

#include "../schedule/link.hpp"

#include <algorithm>
#include <map>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Plans {
 public:
  explicit Plans(const Model& m) : m_(m) {
    for (std::uint32_t q = 0; q < m.queue_count(); ++q)
      if (!m.programs[q].network && m.agents[q].submits > 0) on_[m.schedule.queues[q].place.index].push_back(q);
  }

  std::vector<EnginePlan> all() {
    std::vector<EnginePlan> out;
    if (!m_.options.map) return out;
    for (const auto way : {&Plans::spare, &Plans::one_each, &Plans::halves}) {
      auto plan = current();
      if (plan && std::all_of(on_.begin(), on_.end(), [&](const auto& g) { return (this->*way)(g.second, *plan); }))
        out.push_back(std::move(*plan));
    }
    return out;
  }

 private:
  /// The engines that the queues have now; nullopt if the node does not say which.
  std::optional<EnginePlan> current() const {
    EnginePlan plan;
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) {
      const auto& queue = m_.schedule.queues[q];
      const auto engine = static_cast<std::uint32_t>(m_.programs[q].engine);
      if (m_.programs[q].items.empty() || (!m_.programs[q].network && engine >= 64)) return {};
      const auto at = m_.options.map->packet(q, 0);
      plan.queues.push_back(
          {.line = at.line,
           .context = m_.options.map->contexts[at.context],
           .place = queue.place.index,
           .peer = queue.peer && !queue.peer->is_host() ? std::optional(queue.peer->index) : std::nullopt,
           .engine = EngineId{engine},
           .now = EngineId{engine},
           .network = m_.programs[q].network});
    }
    return plan;
  }
  bool waits(std::uint32_t q) const {
    const auto& items = m_.programs[q].items;
    return std::any_of(items.begin(), items.end(), [](const Item& i) { return i.what == What::poll; });
  }
  const Gpu& gpu(std::uint32_t q) const { return m_.node.gpus[m_.gpu_of(m_.schedule.queues[q].place).value]; }
  /// Bit n: a link recommends engine n of the queue's GPU.
  std::uint64_t recommended(std::uint32_t q) const {
    const auto own = m_.gpu_of(m_.schedule.queues[q].place);
    std::uint64_t mask = 0;
    for (std::uint32_t to = 0; to < m_.node.gpus.size(); ++to)
      if (const auto e = m_.node.engine_for(own, GpuId{to}); to != own.value && e) mask |= std::uint64_t{1} << e->value;
    return mask;
  }
  static std::vector<EngineId> numbers(std::uint64_t mask) {
    std::vector<EngineId> all;
    for (std::uint32_t e = 0; e < 64; ++e)
      if (mask >> e & 1) all.push_back(EngineId{e});
    return all;
  }

  /// What waits and shares its engine moves to one that no other queue has; if there are too few, one for each peer.
  bool spare(const std::vector<std::uint32_t>& queues, EnginePlan& plan) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> sharing;
    for (const auto q : queues) sharing[plan.queues[q].engine.value].push_back(q);
    std::vector<std::uint32_t> moved;
    std::uint64_t used = 0;
    for (const auto& [engine, all] : sharing) {
      used |= std::uint64_t{1} << engine;
      const bool one_stays = std::all_of(all.begin(), all.end(), [&](auto q) { return waits(q); });
      for (auto q = all.begin() + (one_stays ? 1 : 0); q != all.end(); ++q)
        if (waits(*q)) moved.push_back(*q);
    }
    std::sort(moved.begin(), moved.end());
    if (moved.empty()) return true;
    const auto& g = gpu(moved.front());
    const auto free = g.live_engines() & ~used;
    const auto host = numbers(free & g.live_host_engines());
    auto peers = numbers(free & ~g.live_host_engines());
    // Those that no link recommends come first: the others may be needed for another peer.
    std::stable_partition(peers.begin(), peers.end(),
                          [&, all = recommended(moved.front())](EngineId e) { return (all >> e.value & 1) == 0; });
    const auto give = [&](auto key) {
      std::map<std::uint32_t, EngineId> known;
      std::size_t h = 0, p = 0;
      for (const auto q : moved) {
        const auto [at, added] = known.try_emplace(key(q));
        if (added) {
          const bool prefers_host = !plan.queues[q].peer;
          const bool from_host = h < host.size() && (prefers_host || p == peers.size());
          if (!from_host && p == peers.size()) return false;
          at->second = from_host ? host[h++] : peers[p++];
        }
        plan.queues[q].engine = at->second;
      }
      return true;
    };
    return give([](std::uint32_t q) { return q; }) ||
           give([&](std::uint32_t q) { return plan.queues[q].peer.value_or(kNone); });
  }

  /// An engine for each queue, in the order of the text.
  bool one_each(const std::vector<std::uint32_t>& queues, EnginePlan& plan) const {
    const auto& g = gpu(queues.front());
    auto engines = numbers(g.live_engines() & ~g.live_host_engines());
    const auto host = numbers(g.live_host_engines());
    engines.insert(engines.end(), host.begin(), host.end());
    if (queues.size() > engines.size()) return false;
    for (std::size_t i = 0; i < queues.size(); ++i) plan.queues[queues[i]].engine = engines[i];
    return true;
  }

  /// One half of the engines for what waits, the other for what does not, both by peer.
  bool halves(const std::vector<std::uint32_t>& queues, EnginePlan& plan) const {
    const auto& g = gpu(queues.front());
    const auto engines = numbers(g.live_engines() & ~g.live_host_engines());
    const auto half = engines.size() / 2;
    if (half == 0) return false;
    for (const auto q : queues) {
      auto& at = plan.queues[q];
      if (!at.peer) continue;
      at.engine = engines[waits(q) ? half + *at.peer % (engines.size() - half) : *at.peer % half];
    }
    return true;
  }

  const Model& m_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> on_;  ///< by GPU
};

}  // namespace

std::vector<EnginePlan> engine_plans(const Model& m) { return Plans{m}.all(); }

}}}  // namespace sdma::v0_3::check_detail
