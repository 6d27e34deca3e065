// SPDX-License-Identifier: MIT
#pragma once
// The links between the GPUs of a node, found by both ends at once: Topology::link looks through all of them. For those
// who ask about many pairs. Internal.
//
//   const LinkIndex links{topology};                    // the topology stays, and does not change
//   links.link(GpuId{0}, GpuId{1});                     // as topology.link; null if there is none
//   links.engine_for(GpuId{0}, GpuId{1});               // as topology.engine_for
//
// Any thread may ask. The constructor allocates 4 bytes for each pair.
#include "sdma/device/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Topology::engine_for, if the direct link from `src` to `dst` is known; null: there is none.
Result<EngineId> engine_over(const Topology&, const Link*, GpuId src, GpuId dst) noexcept;

class LinkIndex {
 public:
  explicit LinkIndex(const Topology& t) : node_(t), at_(t.gpus.size() * t.gpus.size(), kNone) {
    const auto known = [&](LinkEnd e) { return e.kind == LinkEnd::Kind::gpu && e.index < t.gpus.size(); };
    for (std::size_t i = t.links.size(); i-- > 0;)  // of several, the first counts
      if (const auto& l = t.links[i]; known(l.from) && known(l.to))
        at_[l.from.index * t.gpus.size() + l.to.index] = static_cast<std::uint32_t>(i);
  }
  const Topology& topology() const noexcept { return node_; }
  const Link* link(GpuId from, GpuId to) const noexcept {
    const auto n = node_.gpus.size();
    if (from.value >= n || to.value >= n) return nullptr;
    const auto i = at_[from.value * n + to.value];
    return i == kNone ? nullptr : &node_.links[i];
  }
  Result<EngineId> engine_for(GpuId src, GpuId dst) const noexcept {
    return engine_over(node_, link(src, dst), src, dst);
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  const Topology& node_;
  std::vector<std::uint32_t> at_;  ///< into Topology::links, by both ends
};

}}}  // namespace sdma::v0_3::detail
