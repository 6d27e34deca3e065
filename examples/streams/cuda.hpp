// SPDX-License-Identifier: MIT
#pragma once
// A stream of CUDA for sdma::StreamOrder.
//
//   order.enqueue(cuda_stream(s), ring, 32, deadline, ...);
//
// Words are pinned host memory, such as Device::create_signal gives, or memory of the stream's GPU. The stream's
// context is current in the calling thread. Any thread may use it. Errors: CUresult, as StreamRefusal::status.
#include <cuda.h>

#include "sdma/sync/stream_order.hpp"

inline sdma::StreamCalls cuda_stream(CUstream stream) noexcept {
  return {.stream = stream,
          .write = [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept -> int {
            return cuStreamWriteValue32(static_cast<CUstream>(s), word.value, value, CU_STREAM_WRITE_VALUE_DEFAULT);
          },
          .hold = [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept -> int {
            return cuStreamWaitValue32(static_cast<CUstream>(s), word.value, value, CU_STREAM_WAIT_VALUE_EQ);
          }};
}

/// The same for collectives::Run, whose rounds this stream then carries: its copies are in the stream.
inline sdma::StreamCalls cuda_stream_that_copies(CUstream stream) noexcept {
  auto calls = cuda_stream(stream);
  calls.copy = [](void* s, sdma::GpuVa to, sdma::GpuVa from, std::uint64_t bytes) noexcept -> int {
    return cuMemcpyAsync(to.value, from.value, bytes, static_cast<CUstream>(s));
  };
  return calls;
}
