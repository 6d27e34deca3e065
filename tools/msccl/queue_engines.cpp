// SPDX-License-Identifier: MIT
// Chooses engines for the queues of a GPU: for each, that of its peer. A poll may hold its engine, so where one of
// several queues of an engine waits, they get engines of their own, as long as an MI300X has one that no other queue
// needs.
#include "algorithm.hpp"
#include "sdma/device/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sdma::msccl {
namespace {

constexpr std::uint32_t kLargestNode = 8;

/// The engine that a node of MI300X has for a queue, and its words.
struct Recommended {
  std::uint32_t engine{};
  std::string words{};
};
std::vector<Recommended> recommended(const Topology& node, std::size_t gpu, const std::vector<QueueNeed>& queues) {
  std::vector<Recommended> all;
  const GpuId self{static_cast<std::uint32_t>(gpu)};
  bool to_host = false;
  for (const auto& q : queues) {
    if (q.peer < 0) to_host = !to_host;
    const auto e = q.peer >= 0 ? node.engine_for(self, GpuId{static_cast<std::uint32_t>(q.peer)})
                               : node.engine_for(self, to_host ? HostDirection::to_host : HostDirection::from_host);
    all.push_back({e ? e->value : 0, q.peer >= 0 ? fmt::format("peer=gpu{}", q.peer)
                                     : to_host   ? "peer=host"
                                                 : "from=host"});
  }
  return all;
}

}  // namespace

std::vector<std::string> engines(std::size_t gpu, std::size_t gpus, const std::vector<QueueNeed>& queues) {
  // Larger nodes have engines that are not known here.
  const bool known = gpus <= kLargestNode;
  const auto node = mi300x(known ? static_cast<std::uint32_t>(gpus) : kLargestNode);
  const auto place = known ? gpu : gpu % kLargestNode;
  auto all = recommended(*node, place, queues);
  std::vector<std::string> words;
  for (const auto& r : all) words.push_back(r.words);
  if (!known) return words;
  std::set<std::uint32_t> wanted, taken;
  for (const auto& r : all) wanted.insert(r.engine);
  const auto shares_a_poll = [&](std::size_t i) {
    for (std::size_t k = 0; k < queues.size(); ++k)
      if (k != i && all[k].engine == all[i].engine && (queues[k].waits || queues[i].waits)) return true;
    return false;
  };
  // Those that face the host come last.
  const auto& g = node->gpus[place];
  std::vector<std::uint32_t> order;
  for (std::uint32_t e = 0; e < g.engines(); ++e) order.push_back((e + g.host_engines) % g.engines());
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (taken.insert(all[i].engine).second || !shares_a_poll(i)) continue;
    const auto free =
        std::find_if(order.begin(), order.end(), [&](auto e) { return wanted.count(e) == 0 && taken.count(e) == 0; });
    if (free == order.end()) continue;
    taken.insert(*free);
    all[i].engine = *free;
    words[i] = fmt::format("engine={}", *free);
  }
  return words;
}

}  // namespace sdma::msccl
