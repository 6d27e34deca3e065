#pragma once
// The copy and fill kernels of ROCr itself. ROCr moves bytes within a GPU, fills memory, and puts the code of a program where
// it belongs (HIP's initialisation does) with shaders of its own instead of sDMA. They are recognised, and what they do is done;
// no other kernel is.
//
//   recognised   the code at the kernel object is, byte for byte, within the file of the ROCr that is loaded, and the arguments
//                have the form of a blit: ranges of equal length, the number of work items that the dispatch has
//
//   copy, aligned      src0 dst0 src1 dst1 src2 dst2 src3 dst3 src_end dst_end items     phases one behind another
//   copy, misaligned   src0 dst0 src1 dst1 src_end dst_end items
//   fill               dst0 dst1 dst_end value items
//
// Inside a Section of the reader; no allocation after the first call.
#include "sdma/engine/memory.hpp"

#include <cstddef>

namespace sdma::emulator {

enum class Blit : std::uint8_t {
  done,
  not_ours,  ///< another kernel
  unmapped,  ///< `*missing` is where
};

/// `packet`: the 64 bytes of a kernel dispatch.
Blit run_blit(const std::byte* packet, AddressSpace::Reader&, GpuVa* missing) noexcept;

}  // namespace sdma::emulator
