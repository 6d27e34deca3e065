// SPDX-License-Identifier: MIT
#pragma once
// Kernel dispatches that complete without effect, with `sdma emulate --kernels=skip`. The first one is reported on
// stderr at once, and all of them, counted by name, when the program calls exit or returns from main.
//
//   if (skips_kernels()) skip_kernel(gpu, queue, name, object);   // then complete the packet
//
// Any thread, in each process of its own: a forked child counts from
// zero. If there is no memory for a name, the dispatch counts as "other".
#include "code_object.hpp"

namespace sdma::emulator {

bool skips_kernels() noexcept;
/// `object`: the descriptor, for a kernel without a name.
void skip_kernel(GpuId, std::uint32_t queue, const KernelName&, GpuVa object) noexcept;
/// The same for a dispatch that names its code.
void skip_code(GpuId, std::uint32_t queue, GpuVa code, AddressSpace::Reader&) noexcept;

/// The name as it can be printed: other characters than those of
/// an identifier, which a symbol should not have, become '?'.
struct PrintableName {
  std::array<char, kSymbolBytes + 1> text{};
  explicit PrintableName(const KernelName&) noexcept;
};

}  // namespace sdma::emulator
