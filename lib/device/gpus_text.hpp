// SPDX-License-Identifier: MIT
#pragma once
// The name of a node that a driver describes: its GPUs, in the form of the presets' names.
//
//   t.name = gpus_text(t.gpus);           // "8 x MI300X"; "2 x NVIDIA H100, 1 x NVIDIA H200"
#include "sdma/device/topology.hpp"

#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Neighbours of one name are counted.
std::string gpus_text(const std::vector<Gpu>&);

}}}  // namespace sdma::v0_3::detail
