// SPDX-License-Identifier: MIT
#pragma once
// What a link, or a path that links share, has left for data. Internal.
//
//   data_rate(machine, link.type, link.rate)     // 48.3 of 64 GB/s; nothing if the raw rate is unknown
//
// The simulator has raw rates and efficiencies as separate resources (links.cpp); who only asks how fast bytes can be
// asks here. Pure; any thread. No errors.
#include "sdma/simulate/machine.hpp"

#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

/// In bytes/ns: the raw rate times the efficiency of that type.
inline std::optional<double> data_rate(const MachineDescription& m, LinkType type, const Rate& raw) {
  const auto all = raw.gb_per_s();
  return all ? std::optional(*all * m[link_rate(type).efficiency]) : std::nullopt;
}

}}}  // namespace sdma::v0_3::detail
