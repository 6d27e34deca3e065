// SPDX-License-Identifier: MIT
#pragma once
// The GPU calls that the stand-in for NCCL needs; gpu_cuda.cpp and gpu_hip.cpp have them.
//
//   gpu::copy(to, from, bytes, stream)      // asynchronous
//
// They return whether the call succeeded. Any thread.
#include <cstddef>

namespace stand_in::gpu {

using Stream = void*;

/// What the first collective of a size does besides.
bool load();
bool copy(void* to, const void* from, std::size_t bytes, Stream);
/// The stream waits for a word that is never written.
void stick(Stream);
/// Memory of a GPU, mapped for all.
bool allocate(void** out, std::size_t bytes);

}  // namespace stand_in::gpu
