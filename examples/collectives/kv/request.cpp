// SPDX-License-Identifier: MIT
#include "request.hpp"

#include <algorithm>

namespace collectives::kv {

using namespace sdma;

std::string_view name(Way w) noexcept {
  constexpr std::string_view kNames[] = {"looped", "batched", "b2b", "prelaunched"};
  return kNames[static_cast<std::size_t>(w)];
}

std::vector<Group> groups_of(const Request& r) {
  const auto lane_of = [&](std::uint64_t block) { return block % r.engines * r.queues + block / r.engines % r.queues; };
  const bool one_each = r.way == Way::looped || r.way == Way::batched;
  std::vector<Group> all;
  if (!one_each)
    for (std::size_t lane = 0; lane < r.lanes(); ++lane) all.push_back({.lane = lane});
  for (std::uint64_t i = 0; i < r.blocks; ++i)
    if (one_each) all.push_back({lane_of(i), {i}, r.way == Way::looped && (i + 1) % r.lanes() == 0});
    else all[lane_of(i)].blocks.push_back(i);
  std::erase_if(all, [](const Group& g) { return g.blocks.empty(); });
  all.back().wait = true;
  return all;
}

Result<std::vector<EngineId>> engines_of(const Topology& t, GpuId gpu, HostDirection direction) {
  const auto first = t.engine_for(gpu, direction);
  if (!first) return first.error();
  std::vector<EngineId> all{*first};
  const auto& g = t.gpus[gpu.value];
  for (std::uint32_t e = 0; e < g.engines(); ++e)
    if ((g.live_engines() >> e & 1) != 0 && EngineId{e} != *first) all.push_back({e});
  return all;
}

}  // namespace collectives::kv
