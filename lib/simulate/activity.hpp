// SPDX-License-Identifier: MIT
#pragma once
// What a round has of each term of the energy: ns and bytes.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include <set>

namespace sdma { inline namespace v0_3 { namespace detail {

/// So far, and without those that only need its time. A link stands for itself, and not for the paths that it shares.
template <class Time> Activity World<Time>::activity() const {
  Activity out{};
  const auto at = [&](Power p) -> double& { return out[static_cast<std::size_t>(p)]; };
  const auto& all = net_.resources();
  for (const auto& e : engines_) {
    if (e.network) continue;
    at(Power::engine_active) += e.busy_ns + (e.open != 0 ? lead(now_) - e.since : 0);
    at(Power::engine_byte) += all[e.resource].moved;
  }
  for (const auto& t : threads_) {
    if (t.kernel()) at(Power::kernel_active) += t.share() * all[t.pace].bytes;
    else at(Power::host_active) += t.busy_ns;
  }
  at(Power::kernel_byte) = kernel_bytes_;
  for (std::size_t i = 0; i < memories_.size(); ++i)
    at(i + 1 < memories_.size() ? Power::hbm_byte : Power::host_byte) += all[memories_[i]].bytes;
  for (const auto l : links_) {
    if (l == ~0u) continue;
    const auto& r = all[l];
    at(r.cost == static_cast<std::size_t>(Cost::pcie_efficiency)   ? Power::pcie_byte
       : r.cost == static_cast<std::size_t>(Cost::xgmi_efficiency) ? Power::xgmi_byte
                                                                   : Power::nic_byte) += r.bytes;
  }
  return out;
}

/// The same of a whole round.
template <class Time> Activity World<Time>::activity(double ns) const {
  auto out = activity_;
  for (const auto p : {Power::gpu_idle, Power::xcd_idle, Power::iod_idle, Power::hbm_idle})
    out[static_cast<std::size_t>(p)] = ns * s_.gpus;
  std::set<std::uint32_t> nodes;
  for (std::uint32_t g = 0; g < s_.gpus; ++g) nodes.insert(m_.topology.gpus[g].node);
  out[static_cast<std::size_t>(Power::host_idle)] = ns * static_cast<double>(nodes.size());
  return out;
}

}}}  // namespace sdma::v0_3::detail
