// SPDX-License-Identifier: MIT
#pragma once
// A stream of HIP for sdma::StreamOrder.
//
//   order.enqueue(hip_stream(s), ring, 32, deadline, ...);
//
// Words that the stream waits for are signal memory: hipExtMallocWithFlags(&word, 8, hipMallocSignalMemory), 8 bytes
// each. HIP documents that, and does not refuse others. Its allocation flags say which memory is of this kind.
//
// HIP 5.2.3 does not capture these operations: during a capture it enqueues them at once, reports success, and leaves
// them out of the graph. So both are refused during a capture.
//
// Any thread may use it. Errors: hipError_t, as StreamRefusal::status.
#include <hip/hip_runtime_api.h>

#include "sdma/sync/stream_order.hpp"

inline bool hip_captures(void* stream) noexcept {
  auto status = hipStreamCaptureStatusNone;
  return hipStreamIsCapturing(static_cast<hipStream_t>(stream), &status) != hipSuccess ||
         status != hipStreamCaptureStatusNone;
}

inline sdma::StreamCalls hip_stream(hipStream_t stream) noexcept {
  return {.stream = stream,
          .write = [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept -> int {
            if (hip_captures(s)) return hipErrorStreamCaptureUnsupported;
            return hipStreamWriteValue32(static_cast<hipStream_t>(s), reinterpret_cast<void*>(word.value), value, 0);
          },
          .hold = [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept -> int {
            if (hip_captures(s)) return hipErrorStreamCaptureUnsupported;
            return hipStreamWaitValue32(static_cast<hipStream_t>(s), reinterpret_cast<void*>(word.value), value,
                                        hipStreamWaitValueEq, ~0u);
          },
          .takes =
              [](void*, sdma::GpuVa word) noexcept {
                constexpr unsigned kSignalMemory = 0x4000;
                hipPointerAttribute_t of{};
                return hipPointerGetAttributes(&of, reinterpret_cast<void*>(word.value)) == hipSuccess &&
                       (of.allocationFlags & kSignalMemory) != 0;
              }};
}
