// SPDX-License-Identifier: MIT
#pragma once
// HIP's own kernels, with which it fills memory, copies within a GPU, and waits for and writes words of a stream. They
// are known by name: their code is compiled at run time and depends on the compiler.
//
//   __amd_rocclr_ and                      effect
//   fillBufferAligned                      a row of a pattern
//   fillBufferAligned2D                    rows of a pattern
//   copyBuffer, copyBufferAligned          a row
//   copyBufferRect, copyBufferRectAligned  slices of rows
//   streamOpsWrite                         a word
//   streamOpsWait                          waits for a word
//
// The code object's metadata gives the name, the offset and the size of each argument. A kernel is executed
// if names and sizes are those of a version that is known: HIP 5.2 to 5.7, and 6.4. Work items beyond the
// grid do nothing, as on hardware.
//
//   const auto k = hip_kernel("__amd_rocclr_copyBuffer", packet, reader);
//   if (k.effect) ... else if (k.refusal) ... else it is not one of HIP's
//
// Call it inside a Section of the reader. No allocation. Nothing throws.
#include "effect.hpp"

#include <optional>
#include <string_view>

namespace sdma::emulator {

struct HipKernel {
  std::optional<Effect> effect{};
  const char* refusal{};  ///< why a kernel with a known name is not executed
};
/// `packet`: the 64 bytes of the dispatch of the kernel `name`.
HipKernel hip_kernel(std::string_view name, const std::byte* packet, AddressSpace::Reader&) noexcept;

}  // namespace sdma::emulator
