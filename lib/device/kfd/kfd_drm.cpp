// SPDX-License-Identifier: MIT
#include "kfd_drm.hpp"

#include "../../kfd/drm_abi.hpp"
#include "../loaded_library.hpp"
#include "kfd_driver.hpp"
#include "thunk.hpp"

#include <fmt/format.h>

#include <array>

namespace sdma { inline namespace v0_3 { namespace detail::drm {
namespace {

using namespace sdma::drm;
using kfd::call;

int by_ioctl(int render, KfdGpu& out) {
  std::array<char, 32> name{};
  sdma::drm::Version v{.name_bytes = name.size() - 1, .name = reinterpret_cast<std::uint64_t>(name.data())};
  if (const int error = call(render, kVersionRequest, &v)) return error;
  out.driver = fmt::format("{} {}.{}", name.data(), v.major, v.minor);

  thunk::Grown<DeviceInfo> device;
  Info question{.pointer = reinterpret_cast<std::uint64_t>(&device), .bytes = sizeof device, .query = kDevInfo};
  if (const int error = call(render, kInfoRequest, &question)) return error;
  out.clock_hz = std::uint64_t{device.known.counter_khz} * 1000;

  const auto firmware = [&](std::uint32_t type, std::uint32_t& version, std::uint32_t& feature) {
    std::uint32_t answer[2]{};
    Info q{
        .pointer = reinterpret_cast<std::uint64_t>(answer), .bytes = sizeof answer, .query = kFwVersion, .type = type};
    if (call(render, kInfoRequest, &q) != 0) return;
    version = answer[0];
    feature = answer[1];
  };
  std::uint32_t unused = 0;
  firmware(kSdma, out.sdma_firmware, out.sdma_feature);
  firmware(kMec, out.compute_firmware, unused);
  out.source = "ioctl";
  return 0;
}

/// The functions of libdrm_amdgpu that are used here; they return 0 or a negative errno.
struct Amdgpu {
  LoadedLibrary library;
  int (*initialize)(int fd, std::uint32_t* major, std::uint32_t* minor,
                    void** device) = library["amdgpu_device_initialize"];
  int (*deinitialize)(void* device) = library["amdgpu_device_deinitialize"];
  int (*gpu_info)(void* device, void* info) = library["amdgpu_query_gpu_info"];
  int (*firmware)(void* device, unsigned type, unsigned instance, unsigned index, std::uint32_t* version,
                  std::uint32_t* feature) = library["amdgpu_query_firmware_version"];
};

int by_library(const Amdgpu& l, int render, KfdGpu& out) {
  std::uint32_t major = 0, minor = 0;
  void* device = nullptr;
  if (const int error = l.initialize(render, &major, &minor, &device)) return -error;
  out.driver = fmt::format("amdgpu {}.{}", major, minor);
  thunk::Grown<GpuInfo> info;
  const int error = l.gpu_info(device, &info);
  if (error == 0) {
    out.clock_hz = std::uint64_t{info.known.counter_khz} * 1000;
    std::uint32_t unused = 0;
    (void)l.firmware(device, kSdma, 0, 0, &out.sdma_firmware, &out.sdma_feature);
    (void)l.firmware(device, kMec, 0, 0, &out.compute_firmware, &unused);
  }
  (void)l.deinitialize(device);
  return -error;
}

}  // namespace

int identify(int render, const std::string& library, KfdGpu& out) {
  if (library.empty()) return by_ioctl(render, out);
  // Never unloaded: the library keeps its handles per process, and other code in the process may have opened the same
  // GPU.
  const auto l = load_once<Amdgpu>(
      library, "", [](const Amdgpu& a) { return std::string(a.library.lacking() ? "lacks a function" : ""); });
  if (!l) return by_ioctl(render, out);
  out.source = library;
  return by_library(**l, render, out);
}

}}}  // namespace sdma::v0_3::detail::drm
