// SPDX-License-Identifier: MIT
// Buffers as libdrm_amdgpu allocates, shares and maps them. Part of the program of gem.cpp.
#include "gem.hpp"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cstdlib>

using namespace gem;

namespace {

// As in <libdrm/amdgpu.h>, which is not always installed.
struct AllocRequest {
  std::uint64_t bytes, alignment;
  std::uint32_t domain;
  std::uint64_t flags;
};
struct ImportResult {
  void* buffer;
  std::uint64_t bytes;
};
constexpr int kKms = 1, kDmabuf = 2;

/// The beginning of drmDevice, in <xf86drm.h>.
struct DrmDevice {
  char** nodes;  ///< primary, control, render
  int available;
};
constexpr int kPrimary = 0, kRender = 2;

struct Library {
  explicit Library(const char* name = "libdrm_amdgpu.so.1") : handle(::dlopen(name, RTLD_NOW)) {}
  void* handle;
  template <class F> F* find(const char* name) const { return reinterpret_cast<F*>(::dlsym(handle, name)); }
};

}  // namespace

TEST_CASE("libdrm_amdgpu allocates a buffer, maps it for the host and the GPU, and imports it twice") {
  const Library l;
  if (!l.handle) {
    WARN("no libdrm_amdgpu here");
    return;
  }
  const auto initialize = l.find<int(int, std::uint32_t*, std::uint32_t*, void**)>("amdgpu_device_initialize");
  const auto deinitialize = l.find<int(void*)>("amdgpu_device_deinitialize");
  const auto allocate = l.find<int(void*, AllocRequest*, void**)>("amdgpu_bo_alloc");
  const auto free_buffer = l.find<int(void*)>("amdgpu_bo_free");
  const auto cpu_map = l.find<int(void*, void**)>("amdgpu_bo_cpu_map");
  const auto cpu_unmap = l.find<int(void*)>("amdgpu_bo_cpu_unmap");
  const auto export_buffer = l.find<int(void*, int, std::uint32_t*)>("amdgpu_bo_export");
  const auto import_buffer = l.find<int(void*, int, std::uint32_t, ImportResult*)>("amdgpu_bo_import");
  const auto va_op =
      l.find<int(void*, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t)>("amdgpu_bo_va_op");
  const auto new_context = l.find<int(void*, void**)>("amdgpu_cs_ctx_create");
  const auto free_context = l.find<int(void*)>("amdgpu_cs_ctx_free");
  REQUIRE((initialize && deinitialize && allocate && free_buffer && cpu_map && cpu_unmap && export_buffer &&
           import_buffer && va_op && new_context && free_context));
  std::uint32_t major = 0, minor = 0;
  void* device = nullptr;
  // libdrm's descriptor is a dup of the one that is acquired.
  REQUIRE(initialize(client().render[0], &major, &minor, &device) == 0);
  AllocRequest wanted{.bytes = 1 << 20, .alignment = 4096, .domain = drm::kDomainVram, .flags = 0};
  void *buffer = nullptr, *at = nullptr, *context = nullptr;
  REQUIRE(allocate(device, &wanted, &buffer) == 0);
  REQUIRE(cpu_map(buffer, &at) == 0);
  auto* words = static_cast<std::uint32_t*>(at);
  words[3] = 33;
  const auto gpu = reserve(1 << 20);
  CHECK(va_op(buffer, 0, 1 << 20, gpu, 0, drm::kVaMap) == 0);
  CHECK(copied(0, gpu + 4, gpu + 12));
  CHECK(words[1] == 33);
  std::uint32_t kms = 0, fd = 0;
  CHECK(export_buffer(buffer, kKms, &kms) == 0);
  CHECK(kms != 0);
  REQUIRE(export_buffer(buffer, kDmabuf, &fd) == 0);
  ImportResult same{};
  REQUIRE(import_buffer(device, kDmabuf, fd, &same) == 0);
  CHECK(same.buffer == buffer);  // it knows the handle
  CHECK(same.bytes == 1 << 20);
  CHECK(free_buffer(same.buffer) == 0);
  ::close(static_cast<int>(fd));
  CHECK(new_context(device, &context) == 0);
  CHECK(free_context(context) == 0);
  CHECK(va_op(buffer, 0, 1 << 20, gpu, 0, drm::kVaUnmap) == 0);
  CHECK(va_op(buffer, 0, 1 << 20, gpu, 0, drm::kVaUnmap) == -ENOENT);
  CHECK(cpu_unmap(buffer) == 0);
  CHECK(free_buffer(buffer) == 0);
  CHECK(deinitialize(device) == 0);
}

TEST_CASE("libdrm lists the GPUs, and names the nodes of a descriptor") {
  const Library l("libdrm.so.2");
  if (!l.handle) {
    WARN("no libdrm here");
    return;
  }
  const auto list = l.find<int(std::uint32_t, DrmDevice**, int)>("drmGetDevices2");
  const auto free_list = l.find<void(DrmDevice**, int)>("drmFreeDevices");
  const auto render_name = l.find<char*(int)>("drmGetRenderDeviceNameFromFd");
  const auto node_type = l.find<int(int)>("drmGetNodeTypeFromFd");
  REQUIRE((list && free_list && render_name && node_type));
  std::array<DrmDevice*, 64> devices{};
  const int n = list(0, devices.data(), static_cast<int>(devices.size()));
  REQUIRE(n >= static_cast<int>(client().node.gpus.size()));
  CHECK(list(0, nullptr, 0) == n);
  for (std::size_t g = 0; g < client().node.gpus.size(); ++g) {
    const auto fd = client().render[g];
    const auto expected = "/dev/dri/renderD" + std::to_string(client().node.gpus[g].render_minor);
    char* name = render_name(fd);
    REQUIRE(name);
    CHECK(name == expected);
    std::free(name);
    CHECK(node_type(fd) == kRender);
    const auto found = std::count_if(devices.begin(), devices.begin() + n, [&](const DrmDevice* d) {
      return (d->available & 1 << kPrimary) != 0 && (d->available & 1 << kRender) != 0 && d->nodes[kRender] == expected;
    });
    CHECK(found == 1);
  }
  free_list(devices.data(), n);
}
