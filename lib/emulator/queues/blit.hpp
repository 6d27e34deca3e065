// SPDX-License-Identifier: MIT
#pragma once
// ROCr's own copy and fill kernels. ROCr uses shaders instead of sDMA to move bytes within a GPU, to fill memory, and
// to load the code of a program (for example when HIP initialises).
//
//   recognised   the file of the loaded ROCr contains the code of the kernel object, byte for byte, and the arguments
//                have the form of a blit: ranges of equal length, and as many work items as the dispatch has
//
//   copy, aligned      src0 dst0 src1 dst1 src2 dst2 src3 dst3 src_end dst_end items     phases one after another
//   copy, misaligned   src0 dst0 src1 dst1 src_end dst_end items
//   fill               dst0 dst1 dst_end value items
//
// Call it inside a Section of the reader. No allocation after the first call.
#include "effect.hpp"

#include <optional>

namespace sdma::emulator {

/// `packet`: the 64 bytes of a kernel dispatch. nullopt: another kernel.
std::optional<Effect> rocr_blit(const std::byte* packet, AddressSpace::Reader&) noexcept;

}  // namespace sdma::emulator
