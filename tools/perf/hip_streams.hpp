// SPDX-License-Identifier: MIT
#pragma once
// Streams of HIP beside the KFD device: RCCL's and hipBLAS's work runs on them.
//
//   start_hip(library);                                          // before the device is opened
//   auto driver = hip_driver(device, settings, library);         // functions of the libamdhip64 that the library links
//
// HIP finds the ranks' GPUs by their PCI addresses. HIP and the KFD device share one process of the kernel driver, so
// both have to use the same libhsakmt.so.1: a HIP with one of its own would acquire the GPUs' address spaces a second
// time, which the kernel refuses. ROCr also refuses to start after such a device. Words are HIP's signal memory, as its
// documentation asks for words that a stream waits for.
//
// tests/collectives_perf/hip_abi.cpp compares the declarations with <hip/hip_runtime_api.h> where that is installed.
// Thread-safety and errors: gpu_streams.hpp.
#include "device/requested_library.hpp"
#include "gpu_streams.hpp"
#include "settings.hpp"

namespace collectives::perf {

using sdma::detail::RequestedLibrary;

/// HIP's ABI from version 5 on, as far as it is used here.
struct HipCalls {
  using Status = int;
  using Stream = StreamDriver::Stream;
  static constexpr Status kSuccess = 0, kNotReady = 600;
  static constexpr unsigned kNonBlocking = 1;                     ///< hipStreamNonBlocking
  static constexpr unsigned kAtLeast = 0;                         ///< hipStreamWaitValueGte
  static constexpr unsigned kSignalMemory = 2;                    ///< hipMallocSignalMemory
  static constexpr unsigned kPortable = 1, kCoherent = 1u << 30;  ///< hipHostMalloc...
  static constexpr int kByAddresses = 4;                          ///< hipMemcpyDefault

  RequestedLibrary library;
  const char* (*error_name)(Status) = library["hipGetErrorName"];
  const char* (*error_string)(Status) = library["hipGetErrorString"];
  Status (*device_by_pci)(int* ordinal, const char* address) = library["hipDeviceGetByPCIBusId"];
  Status (*get_device)(int*) = library["hipGetDevice"];
  Status (*set_device)(int) = library["hipSetDevice"];
  Status (*can_access_peer)(int* can, int ordinal, int peer) = library["hipDeviceCanAccessPeer"];
  Status (*enable_peer)(int peer, unsigned flags) = library["hipDeviceEnablePeerAccess"];
  Status (*stream_create)(Stream*, unsigned flags) = library["hipStreamCreateWithFlags"];
  Status (*stream_query)(Stream) = library["hipStreamQuery"];
  Status (*wait_value)(Stream, void*, std::uint32_t value, unsigned flags,
                       std::uint32_t mask) = library["hipStreamWaitValue32"];
  Status (*write_value)(Stream, void*, std::uint32_t value, unsigned flags) = library["hipStreamWriteValue32"];
  Status (*copy)(void* to, const void* from, std::size_t, int kind, Stream) = library["hipMemcpyAsync"];
  Status (*allocate)(void**, std::size_t) = library["hipMalloc"];
  Status (*allocate_host)(void**, std::size_t, unsigned flags) = library["hipHostMalloc"];
  Status (*allocate_signal)(void**, std::size_t, unsigned flags) = library["hipExtMallocWithFlags"];
};

sdma::Result<void, sdma::Diagnostic> start_hip(RequestedLibrary);
/// For a KfdDevice.
sdma::Result<std::unique_ptr<StreamDriver>, sdma::Diagnostic> hip_driver(const sdma::Device&, const Settings&,
                                                                         const RequestedLibrary&);

}  // namespace collectives::perf
