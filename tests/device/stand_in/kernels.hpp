// SPDX-License-Identifier: MIT
#pragma once
// The kernels that the stand-in knows: an operation of PTX's `atom`, the time in ticks of 10 ns, and changed bytes.
//
//   add_32 add_64 ...(address, value, compare)     timestamp(address)     merge(to, now, before, bytes)
//   produce(to, words, value), of tools/perf/cuda_graphs.hpp
//
// All parameters have 64 bits; 32-bit kernels use the lower halves of the values. Any thread may use it.
#include "abi.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace stand_in {

using KernelArguments = std::array<std::uint64_t, 4>;

struct Kernel {
  std::string_view name;
  std::size_t parameters;
  Status (*execute)(int device, const KernelArguments&);
  bool one_thread = true;  ///< cannot be started with more
};

/// Null: not one of these.
const Kernel* find_kernel(std::string_view name);

}  // namespace stand_in
