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
#include "gpu_streams.hpp"
#include "loaded_library.hpp"
#include "settings.hpp"

namespace collectives::perf {

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

  const char* (*error_name)(Status){};
  const char* (*error_string)(Status){};
  Status (*device_by_pci)(int* ordinal, const char* address){};
  Status (*get_device)(int*){};
  Status (*set_device)(int){};
  Status (*can_access_peer)(int* can, int ordinal, int peer){};
  Status (*enable_peer)(int peer, unsigned flags){};
  Status (*stream_create)(Stream*, unsigned flags){};
  Status (*stream_query)(Stream){};
  Status (*wait_value)(Stream, void*, std::uint32_t value, unsigned flags, std::uint32_t mask){};
  Status (*write_value)(Stream, void*, std::uint32_t value, unsigned flags){};
  Status (*copy)(void* to, const void* from, std::size_t, int kind, Stream){};
  Status (*allocate)(void**, std::size_t){};
  Status (*allocate_host)(void**, std::size_t, unsigned flags){};
  Status (*allocate_signal)(void**, std::size_t, unsigned flags){};

  static sdma::Result<HipCalls, sdma::Diagnostic> load(LoadedLibrary);
};

sdma::Result<void, sdma::Diagnostic> start_hip(LoadedLibrary);
/// For a KfdDevice.
sdma::Result<std::unique_ptr<StreamDriver>, sdma::Diagnostic> hip_driver(const sdma::Device&, const Settings&,
                                                                         const LoadedLibrary&);

}  // namespace collectives::perf
