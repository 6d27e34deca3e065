// SPDX-License-Identifier: MIT
#pragma once
// Part of a node, and the numbers that libraries give to its nodes.
//
//   SysfsNode two = only(node, {3, 0});              // GPU 3 becomes GPU 0, GPU 0 becomes GPU 1; links to others go
//   readable_before(files, gpu.kfd_node)             // its number in libhsakmt and ROCr
//
// Any thread. Internal to the library. No errors: the numbers must be those of GPUs.
#include "sdma/device/sysfs.hpp"

#include <vector>

namespace sdma::inline v0::detail {

SysfsNode only(const SysfsNode& all, const std::vector<std::size_t>& gpus);

/// libhsakmt numbers only the nodes that this user may read, in the kernel's order.
std::uint32_t readable_before(const SysfsFiles&, std::uint32_t kfd_node);

}  // namespace sdma::inline v0::detail
