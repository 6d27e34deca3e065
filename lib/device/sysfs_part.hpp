// SPDX-License-Identifier: MIT
#pragma once
// Part of a node, and the numbers that libraries give to its nodes.
//
//   SysfsNode two = only(node, {3, 0});              // GPU 3 becomes GPU 0, GPU 0 becomes GPU 1; links to others go
//   readable_before(files, gpu.kfd_node)             // its number in libhsakmt and ROCr
//
// Any thread. Internal to the library. No errors: the numbers must be those of GPUs.
#include "sysfs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline SysfsNode only(const SysfsNode& all, const std::vector<std::size_t>& gpus) {
  SysfsNode out{.cpu_nodes = all.cpu_nodes, .cpu_cores = all.cpu_cores};
  out.topology.name = all.topology.name;
  out.topology.cpus = all.topology.cpus;
  for (const auto g : gpus) {
    out.gpus.push_back(all.gpus[g]);
    out.topology.gpus.push_back(all.topology.gpus[g]);
  }
  const auto end = [&](LinkEnd e) -> std::optional<LinkEnd> {
    if (e.kind == LinkEnd::Kind::cpu) return e;
    const auto at = std::find(gpus.begin(), gpus.end(), e.index);
    if (at == gpus.end()) return {};
    return LinkEnd::gpu(static_cast<std::uint32_t>(at - gpus.begin()));
  };
  for (auto l : all.topology.links) {
    const auto from = end(l.from), to = end(l.to);
    if (!from || !to) continue;
    l.from = *from;
    l.to = *to;
    out.topology.links.push_back(l);
  }
  return out;
}

/// libhsakmt numbers only the nodes that this user may read, in the kernel's order.
inline std::uint32_t readable_before(const SysfsFiles& files, std::uint32_t kfd_node) {
  std::uint32_t n = 0;
  for (std::uint32_t k = 0; k < kfd_node; ++k) n += files.count(fmt::format("nodes/{}/properties", k)) != 0;
  return n;
}

}}}  // namespace sdma::v0_3::detail
