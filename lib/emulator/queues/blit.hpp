#pragma once
// ROCr's own copy and fill kernels. ROCr uses shaders instead of sDMA to move bytes within a GPU, to fill memory, and to load
// the code of a program (for example when HIP initialises). These kernels are recognised and executed; no other kernel is.
//
//   recognised   the file of the loaded ROCr contains the code of the kernel object, byte for byte, and the arguments have the
//                form of a blit: ranges of equal length, and as many work items as the dispatch has
//
//   copy, aligned      src0 dst0 src1 dst1 src2 dst2 src3 dst3 src_end dst_end items     phases one after another
//   copy, misaligned   src0 dst0 src1 dst1 src_end dst_end items
//   fill               dst0 dst1 dst_end value items
//
// Call it inside a Section of the reader. No allocation after the first call.
#include "sdma/engine/memory.hpp"

#include <cstddef>
#include <cstring>

namespace sdma::emulator {

/// The value at an offset, which may be misaligned.
template <class T> T field(const std::byte* at, std::size_t offset) noexcept {
  T v;
  std::memcpy(&v, at + offset, sizeof v);
  return v;
}

enum class Blit : std::uint8_t {
  done,
  not_ours,  ///< another kernel
  unmapped,  ///< at the address `*missing`
  more,      ///< a part is done: call it again
};

/// `packet`: the 64 bytes of a kernel dispatch. `*done`: the bytes that earlier calls have moved, 0 at first. One call moves at most
/// kBlitStep bytes.
inline constexpr std::uint64_t kBlitStep = 4 << 20;
Blit run_blit(const std::byte* packet, AddressSpace::Reader&, std::uint64_t* done, GpuVa* missing) noexcept;

}  // namespace sdma::emulator
