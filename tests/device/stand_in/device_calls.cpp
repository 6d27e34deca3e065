// SPDX-License-Identifier: MIT
// cuInit, devices, errors and contexts.
#include "calls.hpp"
#include "context.hpp"
#include "settings.hpp"
#include "virtual_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace stand_in {
namespace {

struct Error {
  Status code;
  const char* name;
  const char* text;
};
// clang-format off
constexpr Error kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {abi::kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kContextDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {kMisaligned, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
// clang-format on

std::atomic<pid_t> ready = 0;  // the process that has called cuInit; a child of it cannot use the driver

bool is_device(int d) { return d >= 0 && d < settings().gpus; }

Status init(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  if (settings().gpus == 0) return kNoDevice;
  pid_t none = 0;
  if (ready.compare_exchange_strong(none, ::getpid())) set_connections(connections_now());
  else if (none != ::getpid()) return kNotInitialized;
  return kSuccess;
}

Status driver_version(int* out) {
  if (!out) return kInvalidValue;
  *out = settings().version;
  return kSuccess;
}

Status error(Status code, const char** out, const char* Error::*which) {
  if (!out) return kInvalidValue;
  *out = nullptr;
  for (const auto& e : kErrors)
    if (e.code == code) *out = e.*which;
  return *out ? kSuccess : kInvalidValue;
}
Status error_name(Status code, const char** out) { return error(code, out, &Error::name); }
Status error_string(Status code, const char** out) { return error(code, out, &Error::text); }

Status device_count(int* out) {
  if (!out) return kInvalidValue;
  *out = settings().gpus;
  return kSuccess;
}

Status device(abi::DeviceOrdinal* out, int ordinal) {
  if (!out) return kInvalidValue;
  if (!is_device(ordinal)) return kInvalidDevice;
  *out = ordinal;
  return kSuccess;
}

Status device_name(char* out, int room, abi::DeviceOrdinal d) {
  if (!is_device(d)) return kInvalidDevice;
  if (!out || room <= 0) return kInvalidValue;
  std::snprintf(out, static_cast<std::size_t>(room), "stand-in GPU");
  return kSuccess;
}

Status device_memory(std::size_t* out, abi::DeviceOrdinal d) {
  if (!is_device(d)) return kInvalidDevice;
  if (!out) return kInvalidValue;
  *out = VirtualMemory::kDeviceBytes;
  return kSuccess;
}

Status device_attribute(int* out, int attribute, abi::DeviceOrdinal d) {
  if (!is_device(d)) return kInvalidDevice;
  if (!out) return kInvalidValue;
  switch (attribute) {
    case abi::kMultiprocessors: *out = 132; return kSuccess;
    case abi::kPciBus: *out = 16 + d; return kSuccess;
    case abi::kComputeMajor: *out = 9; return kSuccess;
    case abi::kUnifiedAddressing:
    case abi::kHostPointers:
    case abi::kVirtualMemory:
    case abi::kFileHandles: *out = 1; return kSuccess;
    case abi::kPciDevice:
    case abi::kPciDomain:
    case abi::kComputeMinor:
    case abi::kHostAtomics:
    case abi::kHostNuma: *out = 0; return kSuccess;
    default: return kInvalidValue;
  }
}

Status peer_attribute(int* out, int attribute, abi::DeviceOrdinal src, abi::DeviceOrdinal dst) {
  if (!is_device(src) || !is_device(dst) || src == dst) return kInvalidDevice;
  if (!out || (attribute != abi::kPeerAccess && attribute != abi::kPeerAtomics)) return kInvalidValue;
  *out = 1;
  return kSuccess;
}

Status retain(abi::Context* out, abi::DeviceOrdinal d) {
  if (!is_device(d)) return kInvalidDevice;
  if (!out) return kInvalidValue;
  Context* c = nullptr;
  const auto code = retain_context(&c, d);
  if (code == kSuccess) *out = reinterpret_cast<abi::Context>(c);
  return code;
}

Status release_primary(abi::DeviceOrdinal d) { return is_device(d) ? release_context(d) : kInvalidDevice; }

Status push(abi::Context c) { return push_context(known_context(c)); }

Status pop(abi::Context* out) {
  Context* c = nullptr;
  const auto code = pop_context(&c);
  if (code == kSuccess && out) *out = reinterpret_cast<abi::Context>(c);
  return code;
}

}  // namespace

bool initialised() noexcept { return ready == ::getpid(); }

std::span<const Entry> device_calls() {
  static const Entry all[] = {
      {"cuInit", function<"cuInit", init, Before::allowed>()},
      {"cuDriverGetVersion", function<"cuDriverGetVersion", driver_version, Before::allowed>()},
      {"cuGetErrorName", function<"cuGetErrorName", error_name, Before::allowed>()},
      {"cuGetErrorString", function<"cuGetErrorString", error_string, Before::allowed>()},
      {"cuDeviceGetCount", function<"cuDeviceGetCount", device_count>()},
      {"cuDeviceGet", function<"cuDeviceGet", device>()},
      {"cuDeviceGetName", function<"cuDeviceGetName", device_name>()},
      {"cuDeviceTotalMem", function<"cuDeviceTotalMem", device_memory>()},
      {"cuDeviceGetAttribute", function<"cuDeviceGetAttribute", device_attribute>()},
      {"cuDeviceGetP2PAttribute", function<"cuDeviceGetP2PAttribute", peer_attribute>()},
      {"cuDevicePrimaryCtxRetain", function<"cuDevicePrimaryCtxRetain", retain>()},
      {"cuDevicePrimaryCtxRelease", function<"cuDevicePrimaryCtxRelease", release_primary>()},
      {"cuCtxPushCurrent", function<"cuCtxPushCurrent", push>()},
      {"cuCtxPopCurrent", function<"cuCtxPopCurrent", pop>()},
  };
  return all;
}

}  // namespace stand_in
