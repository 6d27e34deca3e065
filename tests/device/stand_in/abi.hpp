// SPDX-License-Identifier: MIT
#pragma once
// The ABI of the stand-in: that of lib/device/cuda/cuda_driver.hpp, and the further codes that the stand-in returns.
//
// The stand-in is a libcuda.so.1 for machines without an NVIDIA GPU. It executes the functions that cuda_driver.hpp
// names, on memory and threads, and behaves as the driver of an H100 was measured to behave (driver 580, CUDA 13.0).
// README.md lists the promises. Nothing here links the library under test.
#include "../../../lib/device/cuda/cuda_driver.hpp"

namespace stand_in {

namespace abi {
using namespace sdma::detail::cuda;
// Of waits and writes in one call, which the device does not use: CUstreamBatchMemOpParams.
struct WordOperation {
  int operation{};
  Pointer address{};  ///< after 4 bytes that are not used
  std::uint64_t value{};
  unsigned flags{};
  Pointer alias{};
  std::uint64_t rest{};
};
static_assert(sizeof(WordOperation) == 48);
inline constexpr int kWaitOperation = 1, kWriteOperation = 2;
inline constexpr unsigned kMostWordOperations = 255;
// Of graphs, which the device does not use.
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
inline const Stream kLegacyStream = reinterpret_cast<Stream>(1);  ///< CU_STREAM_LEGACY
inline constexpr int kCaptureRelaxed = 2;  ///< CUstreamCaptureMode: global, thread local, relaxed
}  // namespace abi
using abi::kCaptureUnsupported;
using abi::kIllegalAddress;
using abi::kInvalidValue;
using abi::kNoDevice;
using abi::kNotReady;
using abi::kNotSupported;
using abi::kOutOfMemory;
using abi::kSuccess;
using abi::Pointer;
using abi::Status;

inline constexpr Status kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201, kInvalidPtx = 218,
                        kInvalidHandle = 400, kNotFound = 500, kContextDestroyed = 709, kAlreadyRegistered = 712,
                        kNotRegistered = 713, kMisaligned = 716, kLaunchFailed = 719, kCaptureInvalidated = 901,
                        kNotCapturing = 905, kUnknown = 999;

}  // namespace stand_in
