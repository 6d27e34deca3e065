// SPDX-License-Identifier: MIT
// Where packets lie in their ring, and which queues share an engine.
#include "program.hpp"
#include "sdma/device/topology.hpp"

#include <bit>
#include <map>

namespace sdma::explore::detail {

/// Each piece takes at most half of the ring, and no piece crosses the end of the ring.
bool lay_out(Stream& out, std::size_t begin) {
  for (std::size_t i = begin; i < out.packets.size();) {
    std::uint64_t bytes = 0;
    auto end = i;
    for (; end < out.packets.size() && bytes + out.packets[end].dwords * 4 <= out.ring / 2; ++end)
      bytes += out.packets[end].dwords * 4;
    if (end == i) return false;
    auto at = out.pieces.empty() ? 0 : out.pieces.back().ring_end;
    if (at % out.ring + bytes > out.ring) at += out.ring - at % out.ring;
    for (auto k = i; k < end; ++k) out.packets[k].ring_end = at += out.packets[k].dwords * 4;
    out.pieces.push_back({static_cast<std::uint16_t>(end - i), at});
    i = end;
  }
  return true;
}

void share_engines(Program& p) {
  static const auto node = mi300x();
  const auto& s = *p.schedule;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of;
  for (std::size_t q = 0; q < s.queues.size(); ++q) {
    const auto& queue = s.queues[q];
    auto engine = queue.engine;
    if (queue.peer) {
      const GpuId gpu{queue.place.index};
      const auto e = queue.peer->is_host() ? node->engine_for(gpu, HostDirection::to_host)
                                           : node->engine_for(gpu, GpuId{queue.peer->index});
      engine = e ? e->value : 1000 + queue.peer->index;
    }
    of.emplace_back(queue.place.index, engine);
    shared[of.back()] |= std::uint64_t{1} << q;
  }
  std::uint32_t n = 0;
  for (const auto& [engine, queues] : shared) {
    for (std::size_t q = 0; q < of.size(); ++q) {
      if (of[q] != engine) continue;
      p.queues[q].engine = n;
      if (!p.profile.poll_yields && !std::has_single_bit(queues))
        p.queues[q].sharers = queues & ~(std::uint64_t{1} << q);
    }
    ++n;
  }
}

}  // namespace sdma::explore::detail
