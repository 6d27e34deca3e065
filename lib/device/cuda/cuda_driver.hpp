// SPDX-License-Identifier: MIT
#pragma once
// libcuda, loaded at run time: the functions that the CUDA device needs, and the part of the ABI that they use.
//
//   auto d = load_driver("libcuda.so.1");       // a Diagnostic says what to install
//   (*d)->stream_query(stream);                 // calls cuStreamQuery
//
// The ABI is stated here and not taken from <cuda.h>: a build needs no CUDA. tests/device/cuda_abi.cpp compares all of
// this with the header where it is installed. A function with several versions is asked for by the version of the ABI
// that is stated here (cuGetProcAddress), because the symbol without a suffix may be an older one.
//
// What blocks while a stream of the process waits is not here, on purpose: cuMemFreeHost, cuCtxSynchronize and the
// like; cuMemHostUnregister is called only while none does (registered.hpp). Modules are loaded once, when a GPU is
// first used.
// Loaded once per name and never unloaded, because the driver keeps threads. Any thread may use it.
#include "../loaded_library.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

using Status = int;
inline constexpr Status kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kStubLibrary = 34, kNoDevice = 100,
                        kNotReady = 600, kIllegalAddress = 700, kNotSupported = 801, kCaptureUnsupported = 900;

using DeviceOrdinal = int;
using Pointer = unsigned long long;  ///< a GPU address, or a host address that GPUs can reach
using Handle = unsigned long long;   ///< of memory that is not mapped yet
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;

// CUdevice_attribute.
inline constexpr int kMultiprocessors = 16, kPciBus = 33, kPciDevice = 34, kUnifiedAddressing = 41, kPciDomain = 50,
                     kComputeMajor = 75, kComputeMinor = 76, kHostAtomics = 86, kHostPointers = 91,
                     kVirtualMemory = 102, kFileHandles = 103, kHostNuma = 134;
// CUdevice_P2PAttribute.
inline constexpr int kPeerAccess = 2, kPeerAtomics = 3;
// Flags of streams, of their waits and of host memory.
inline constexpr unsigned kNonBlocking = 1;
inline constexpr unsigned kWaitGreaterOrEqual = 0, kWaitEqual = 1;
inline constexpr unsigned kPortable = 1, kDeviceMapped = 2;
// CUmemAllocationHandleType: what cuMemExportToShareableHandle makes of memory.
inline constexpr int kFileDescriptor = 1;
// CUpointer_attribute, and the CUmemorytype of the host.
inline constexpr int kMemoryType = 2, kOrdinalOf = 9, kRangeStart = 11, kRangeBytes = 12;
inline constexpr unsigned kHostMemory = 1;
inline constexpr Status kPeerAlreadyEnabled = 704;

struct Location {
  int type = 1;  ///< 1: a GPU
  int id{};
};
struct MemoryProperties {
  int type = 1;  ///< 1: pinned
  int handle_types{};
  Location location{};
  void* windows{};
  struct {
    unsigned char compression{}, rdma{};
    unsigned short usage{};
    unsigned char reserved[4]{};
  } flags{};
};
struct MemoryAccess {
  Location location{};
  int flags = 3;  ///< 3: read and write
};
struct Copy2D {
  static constexpr int kUnified = 4;
  std::size_t src_x{}, src_y{};
  int src_type = kUnified;
  const void* src_host{};
  Pointer src{};
  void* src_array{};
  std::size_t src_pitch{}, dst_x{}, dst_y{};
  int dst_type = kUnified;
  void* dst_host{};
  Pointer dst{};
  void* dst_array{};
  std::size_t dst_pitch{}, width{}, height{};
};
struct BatchAttributes {
  int src_access_order = 1;  ///< 1: in stream order
  Location src_hint{.type = 0}, dst_hint{.type = 0};
  unsigned flags{};
};

/// The version for cuGetProcAddress. The ABI of every function but the batches is that of 12.0.
inline constexpr int kAbi = 12000, kBatchAbi = 12080, kBatchAbiNow = 13000;
/// The function of this version that cuGetProcAddress, which is at `get`, finds.
inline void* procedure(void* get, const char* symbol, int version) {
  using GetProcAddress = Status(const char* symbol, void** function, int version, std::uint64_t flags, int* found);
  void* at = nullptr;
  int found = 0;
  return reinterpret_cast<GetProcAddress*>(get)(symbol, &at, version, 0, &found) == kSuccess ? at : nullptr;
}
inline void* by_version(void* get, const char* symbol) { return procedure(get, symbol, kAbi); }

struct Driver {
  LoadedLibrary library;
  LoadedLibrary find{library.may("cuGetProcAddress_v2").at, by_version};
  int version{};  ///< 13000: CUDA 13.0

  Status (*init)(unsigned flags) = find["cuInit"];
  Status (*driver_version)(int*) = find["cuDriverGetVersion"];
  Status (*error_name)(Status, const char**) = find["cuGetErrorName"];
  Status (*error_string)(Status, const char**) = find["cuGetErrorString"];
  Status (*device_count)(int*) = find["cuDeviceGetCount"];
  Status (*device)(DeviceOrdinal*, int ordinal) = find["cuDeviceGet"];
  Status (*device_name)(char*, int room, DeviceOrdinal) = find["cuDeviceGetName"];
  Status (*device_memory)(std::size_t*, DeviceOrdinal) = find["cuDeviceTotalMem"];
  Status (*device_attribute)(int*, int attribute, DeviceOrdinal) = find["cuDeviceGetAttribute"];
  Status (*peer_attribute)(int*, int attribute, DeviceOrdinal src, DeviceOrdinal dst) = find["cuDeviceGetP2PAttribute"];
  Status (*retain_context)(Context*, DeviceOrdinal) = find["cuDevicePrimaryCtxRetain"];
  Status (*push_context)(Context) = find["cuCtxPushCurrent"];
  Status (*pop_context)(Context*) = find["cuCtxPopCurrent"];

  Status (*stream_create)(Stream*, unsigned flags, int priority) = find["cuStreamCreateWithPriority"];
  Status (*stream_query)(Stream) = find["cuStreamQuery"];
  Status (*wait_value)(Stream, Pointer, std::uint32_t, unsigned flags) = find["cuStreamWaitValue32"];
  Status (*write_value)(Stream, Pointer, std::uint32_t, unsigned flags) = find["cuStreamWriteValue32"];
  Status (*copy)(Pointer dst, Pointer src, std::size_t, Stream) = find["cuMemcpyAsync"];
  Status (*copy_2d)(const Copy2D*, Stream) = find["cuMemcpy2DAsync"];
  Status (*set_8)(Pointer, unsigned char, std::size_t count, Stream) = find["cuMemsetD8Async"];
  Status (*set_16)(Pointer, unsigned short, std::size_t count, Stream) = find["cuMemsetD16Async"];
  Status (*set_32)(Pointer, unsigned, std::size_t count, Stream) = find["cuMemsetD32Async"];
  Status (*set_2d)(Pointer, std::size_t pitch, unsigned char, std::size_t width, std::size_t height,
                   Stream) = find["cuMemsetD2D8Async"];
  /// One of the two, or neither: CUDA 13.0 dropped the index of the copy that failed.
  Status (*copy_batch_12_8)(const Pointer* dst, const Pointer* src, const std::size_t* bytes, std::size_t count,
                            const BatchAttributes*, const std::size_t* from, std::size_t attributes,
                            std::size_t* failed, Stream){};
  Status (*copy_batch_13_0)(const Pointer* dst, const Pointer* src, const std::size_t* bytes, std::size_t count,
                            const BatchAttributes*, const std::size_t* from, std::size_t attributes, Stream){};

  Status (*host_allocate)(void**, std::size_t, unsigned flags) = find["cuMemHostAlloc"];
  Status (*granularity)(std::size_t*, const MemoryProperties*, int option) = find["cuMemGetAllocationGranularity"];
  Status (*memory_create)(Handle*, std::size_t, const MemoryProperties*,
                          unsigned long long flags) = find["cuMemCreate"];
  Status (*memory_release)(Handle) = find["cuMemRelease"];
  Status (*reserve)(Pointer*, std::size_t, std::size_t alignment, Pointer at,
                    unsigned long long flags) = find["cuMemAddressReserve"];
  Status (*unreserve)(Pointer, std::size_t) = find["cuMemAddressFree"];
  Status (*map)(Pointer, std::size_t, std::size_t offset, Handle, unsigned long long flags) = find["cuMemMap"];
  Status (*unmap)(Pointer, std::size_t) = find["cuMemUnmap"];
  Status (*set_access)(Pointer, std::size_t, const MemoryAccess*, std::size_t count) = find["cuMemSetAccess"];

  Status (*export_memory)(void* to, Handle, int type, unsigned long long flags) = find["cuMemExportToShareableHandle"];
  Status (*import_memory)(Handle*, void* from, int type) = find["cuMemImportFromShareableHandle"];
  Status (*host_register)(void*, std::size_t, unsigned flags) = find["cuMemHostRegister"];
  Status (*host_unregister)(void*) = find["cuMemHostUnregister"];

  Status (*pointer_attribute)(void* out, int attribute, Pointer) = find["cuPointerGetAttribute"];
  Status (*enable_peer)(Context of, unsigned flags) = find["cuCtxEnablePeerAccess"];

  Status (*load_module)(Module*, const void* text) = find["cuModuleLoadData"];
  Status (*function)(Function*, Module, const char* name) = find["cuModuleGetFunction"];
  Status (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, Stream, void** arguments,
                   void** extra) = find["cuLaunchKernel"];

  /// "CUDA_ERROR_ILLEGAL_ADDRESS"; a string that is never freed.
  std::string_view name_of(Status s) const noexcept {
    const char* text = nullptr;
    return error_name && error_name(s, &text) == kSuccess && text ? text : "an unknown CUDA error";
  }
  /// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered".
  std::string describe(Status s) const {
    const char* text = nullptr;
    if (!error_string || error_string(s, &text) != kSuccess || !text) return std::string(name_of(s));
    return fmt::format("{}: {}", name_of(s), text);
  }
};

/// Loads the library and finds its functions; does not initialise the driver.
Result<const Driver*, Diagnostic> load_driver(const std::string& name);

}}}  // namespace sdma::v0_3::detail::cuda
