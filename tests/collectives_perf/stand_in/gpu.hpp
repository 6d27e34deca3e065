// SPDX-License-Identifier: MIT
#pragma once
// The GPU calls that the stand-in for NCCL needs; gpu_cuda.cpp and gpu_hip.cpp have them.
//
//   gpu::copy(to, from, bytes, stream)      // asynchronous
//
// They return whether the call succeeded. Any thread.
#include <cstddef>
#include <cstdint>

namespace stand_in::gpu {

using Stream = void*;

/// What the first collective of a size does besides.
bool load();
bool copy(void* to, const void* from, std::size_t bytes, Stream);
/// The stream waits for a word that is never written.
void stick(Stream);
/// Pins host memory.
bool pin(void*, std::size_t bytes);
/// The stream stores the word, or waits until it is at least that.
bool write(std::uint32_t* word, std::uint32_t value, Stream);
bool wait(std::uint32_t* word, std::uint32_t value, Stream);
/// Memory of a GPU, mapped for all.
bool allocate(void** out, std::size_t bytes);

}  // namespace stand_in::gpu
