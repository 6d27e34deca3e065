// SPDX-License-Identifier: MIT
#include "driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>

namespace sdma::inline v0::detail::cuda {
namespace {

/// Of cuGetProcAddress. The ABI of every function but the batches is that of 12.0.
constexpr int kAbi = 12000, kBatchAbi = 12080, kBatchAbiNow = 13000;
using GetProcAddress = Status (*)(const char* symbol, void** function, int version, std::uint64_t flags, int* found);

constexpr const char* kHint =
    "install NVIDIA's driver, version 525 or later (Debian: libcuda1), or give the library's path in "
    "CudaOptions::libcuda; without an NVIDIA GPU, use the software device";

}  // namespace

std::string_view Driver::name_of(Status s) const noexcept {
  const char* text = nullptr;
  return error_name && error_name(s, &text) == kSuccess && text ? text : "an unknown CUDA error";
}

std::string Driver::describe(Status s) const {
  const char* text = nullptr;
  if (!error_string || error_string(s, &text) != kSuccess || !text) return std::string(name_of(s));
  return fmt::format("{}: {}", name_of(s), text);
}

Result<const Driver*, Diagnostic> load_driver(const std::string& name) {
  static std::mutex mutex;
  static auto* const loaded = new std::map<std::string, std::unique_ptr<Driver>>;  // never destroyed, like the library
  const std::lock_guard lock(mutex);
  if (const auto it = loaded->find(name); it != loaded->end()) return it->second.get();

  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    return Diagnostic{
        .where = name, .message = fmt::format("cannot be loaded: {}", why ? why : "no reason given"), .hint = kHint};
  }
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!find)
    return Diagnostic{
        .where = name, .message = "does not export cuGetProcAddress_v2: it is older than CUDA 12.0", .hint = kHint};

  auto d = std::make_unique<Driver>();
  d->name = name;
  const char* lacking = nullptr;
  const auto take = [&](auto& to, const char* symbol, int version = kAbi, bool must = true) {
    void* at = nullptr;
    int found = 0;
    if (find(symbol, &at, version, 0, &found) == kSuccess && at)
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(at);
    else if (must) lacking = symbol;
  };
  take(d->init, "cuInit");
  take(d->driver_version, "cuDriverGetVersion");
  take(d->error_name, "cuGetErrorName");
  take(d->error_string, "cuGetErrorString");
  take(d->device_count, "cuDeviceGetCount");
  take(d->device, "cuDeviceGet");
  take(d->device_name, "cuDeviceGetName");
  take(d->device_memory, "cuDeviceTotalMem");
  take(d->device_attribute, "cuDeviceGetAttribute");
  take(d->peer_attribute, "cuDeviceGetP2PAttribute");
  take(d->retain_context, "cuDevicePrimaryCtxRetain");
  take(d->push_context, "cuCtxPushCurrent");
  take(d->pop_context, "cuCtxPopCurrent");
  take(d->stream_create, "cuStreamCreateWithPriority");
  take(d->stream_query, "cuStreamQuery");
  take(d->wait_value, "cuStreamWaitValue32");
  take(d->write_value, "cuStreamWriteValue32");
  take(d->copy, "cuMemcpyAsync");
  take(d->copy_2d, "cuMemcpy2DAsync");
  take(d->set_8, "cuMemsetD8Async");
  take(d->set_16, "cuMemsetD16Async");
  take(d->set_32, "cuMemsetD32Async");
  take(d->set_2d, "cuMemsetD2D8Async");
  take(d->host_allocate, "cuMemHostAlloc");
  take(d->granularity, "cuMemGetAllocationGranularity");
  take(d->memory_create, "cuMemCreate");
  take(d->memory_release, "cuMemRelease");
  take(d->reserve, "cuMemAddressReserve");
  take(d->unreserve, "cuMemAddressFree");
  take(d->map, "cuMemMap");
  take(d->unmap, "cuMemUnmap");
  take(d->set_access, "cuMemSetAccess");
  take(d->pointer_attribute, "cuPointerGetAttribute");
  take(d->enable_peer, "cuCtxEnablePeerAccess");
  take(d->load_module, "cuModuleLoadData");
  take(d->function, "cuModuleGetFunction");
  take(d->launch, "cuLaunchKernel");
  if (lacking)
    return Diagnostic{.where = name,
                      .message = fmt::format("lacks {}, so it is not a libcuda of CUDA 12.0 or later", lacking),
                      .hint = kHint};
  if (d->driver_version(&d->version) != kSuccess) d->version = kAbi;
  if (d->version >= kBatchAbiNow) take(d->copy_batch_13_0, "cuMemcpyBatchAsync", kBatchAbiNow, false);
  else if (d->version >= kBatchAbi) take(d->copy_batch_12_8, "cuMemcpyBatchAsync", kBatchAbi, false);
  return loaded->emplace(name, std::move(d)).first->second.get();
}

}  // namespace sdma::inline v0::detail::cuda
