// SPDX-License-Identifier: MIT
#pragma once
// The engines that copy between a GPU and the host, when one is not enough.
//
//   const auto all = engines_of(device.topology(), GpuId{0}, HostDirection::from_host);
//   if (all) queue on (*all)[0], (*all)[1], ..
//
// Pure; any thread may call it. Error: bad_argument if there is no such GPU.
#include "sdma/device/topology.hpp"

#include <cstdint>
#include <vector>

namespace collectives {

/// The live engines of a GPU, in the order of their use: the one that the node recommends for this direction, the
/// others that face the host, then those that face other GPUs.
inline sdma::Result<std::vector<sdma::EngineId>> engines_of(const sdma::Topology& t, sdma::GpuId gpu,
                                                            sdma::HostDirection direction) {
  const auto first = t.engine_for(gpu, direction);
  if (!first) return first.error();
  std::vector<sdma::EngineId> all{*first};
  const auto& g = t.gpus[gpu.value];
  for (std::uint32_t e = 0; e < g.engines(); ++e)
    if ((g.live_engines() >> e & 1) != 0 && sdma::EngineId{e} != *first) all.push_back({e});
  return all;
}

}  // namespace collectives
