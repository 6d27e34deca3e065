// SPDX-License-Identifier: MIT
// DRM ioctls of a render node, as libdrm_amdgpu, libhsakmt and ROCr use them to identify the GPU, and to allocate,
// share and map buffers. Submissions, and what belongs to them, return EINVAL.
#include "../../kfd/drm_abi.hpp"
#include "../no_memory.hpp"
#include "../node_options.hpp"
#include "node.hpp"
#include "user.hpp"

#include "../../device/product.hpp"
#include "../../engine/execute.hpp"

#include <linux/ioctl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

namespace sdma::emulator {
namespace {

using namespace drm;

/// The driver's numbers of engine types, and its description of one type. There are no graphics rings to submit to.
constexpr std::uint32_t kDmaIp = 2;
struct IpInfo {
  std::uint32_t major, minor;
  std::uint64_t capabilities;
  std::uint32_t buffer_start_alignment, buffer_size_alignment, rings, discovery_version;
};
static_assert(sizeof(IpInfo) == 32);

int put_string(std::uint64_t to, std::uint64_t& room, std::string_view s) {
  const auto n = std::min<std::uint64_t>(room, s.size());
  room = s.size();
  return to == 0 || to_user(to, s.data(), n) ? 0 : EFAULT;
}

int version(Version& v) {
  v.major = 3;
  v.minor = 61;
  v.patch = 0;
  const int a = put_string(v.name, v.name_bytes, "amdgpu");
  const int b = put_string(v.date, v.date_bytes, "20150101");
  const int c = put_string(v.text, v.text_bytes, "AMD GPU");
  return a | b | c;
}

/// Stores as much of the answer as the caller has room for.
int answer(const Info& i, std::span<const std::byte> bytes) {
  return to_user(i.pointer, bytes.data(), std::min<std::size_t>(bytes.size(), i.bytes)) ? 0 : EFAULT;
}
template <class T> int answer(const Info& i, const T& value) { return answer(i, std::as_bytes(std::span(&value, 1))); }

DeviceInfo device_info(const SysfsGpu& g) {
  DeviceInfo d{};
  d.device_id = g.device_id;
  const auto& p = product_like(options().gfx);
  d.family = p.family;
  d.external_rev = p.revision;
  d.shader_engines = p.shader_engines;
  d.arrays_each = p.arrays_each;
  d.counter_khz = kTicksPerSecond / 1000;
  d.max_engine_khz = p.engine_mhz * 1000;
  d.max_memory_khz = p.memory_mhz * 1000;
  d.cus = g.compute_units;
  d.va_begin = 0x200000;
  d.va_end = 0x8000'0000'0000;
  d.va_alignment = d.gart_page = 4096;
  d.pte_fragment = 2 << 20;
  d.vram_type = p.has_hbm() ? 6 : 9;  // HBM, GDDR6
  d.vram_bits = p.memory_bits;
  return d;
}

/// Returns 0, or an errno for an unknown firmware. Firmware that an accelerator without graphics lacks has version 0.
int firmware(const SysfsGpu& g, std::uint32_t engines, const Info& i, std::uint32_t& version) {
  const auto type = i.type, index = i.index;
  if (type < kFirstFirmware || type > kLastFirmware) return EINVAL;
  if ((type == kMec && index > 1) || (type == kSdma && index >= engines)) return EINVAL;
  version = type == kSdma ? g.sdma_firmware : type == kMec ? g.firmware : 0;
  return 0;
}

int info(Node* process, std::size_t index, const Info& i) {
  const auto& g = tree().node().gpus[index];
  const auto& gpu = tree().node().topology.gpus[index];
  const auto engines = gpu.engines();
  const auto vram = gpu.memory_bytes;
  MemoryUse use;
  if (process) use = process->memory.shared().used(static_cast<std::uint32_t>(index));
  const auto used = use.vram + use.gem_vram, gtt = use.gtt + use.gem_gtt;
  const auto host = process ? process->memory.limits().gtt : vram;
  if (i.bytes == 0 || i.pointer == 0) return EINVAL;
  switch (i.query) {
    case kAccelWorking: return answer(i, std::uint32_t{1});
    case kDevInfo: {
      // The kernel's struct is longer; the rest is zero.
      std::array<std::byte, 512> all{};
      const auto known = device_info(g);
      std::memcpy(all.data(), &known, sizeof known);
      return answer(i, all);
    }
    case kReadMmr: {
      const std::array<std::uint32_t, 128> zeros{};
      if (i.instance > zeros.size()) return EINVAL;
      return answer(i, std::as_bytes(std::span(zeros).first(i.instance)));
    }
    case kFwVersion: {
      std::array<std::uint32_t, 2> version_and_feature{};
      if (const int error = firmware(g, engines, i, version_and_feature[0])) return error;
      return answer(i, version_and_feature);
    }
    case kHwIpInfo:
      if (i.type != kDmaIp) return EINVAL;
      return answer(i, IpInfo{.major = 4,
                              .minor = 4,
                              .capabilities = 0,
                              .buffer_start_alignment = 256,
                              .buffer_size_alignment = 4,
                              .rings = static_cast<std::uint32_t>((std::uint64_t{1} << engines) - 1),
                              .discovery_version = 0});
    case kHwIpCount: return answer(i, i.type == kDmaIp ? engines : std::uint32_t{0});
    case kTimestamp: return answer(i, host_ticks());
    case kVramGtt: return answer(i, std::array{vram, vram, host});
    case kVisibleVramUsage:
    case kVramUsage: return answer(i, used);
    case kVramLost: return answer(i, std::uint32_t{0});
    case kGttUsage: return answer(i, gtt);
    case kBytesMoved:
    case kEvictions:
    case kCpuPageFaults: return answer(i, std::uint64_t{0});
    case kMemoryInfo:
      return answer(i, std::array<std::uint64_t, 12>{vram, vram - used, used, vram / 4 * 3, vram, vram - used, used,
                                                     vram / 4 * 3, host, host - gtt, gtt, host / 4 * 3});
    default: return EINVAL;
  }
}

constexpr std::size_t kLargestArgs = 512;

template <class Args> Args& as(std::byte* args) {
  static_assert(sizeof(Args) <= kLargestArgs);
  return *reinterpret_cast<Args*>(args);
}

int capability(Cap& c) {
  if (c.capability == 0 || c.capability > kSyncTimeline) return EINVAL;
  c.value = c.capability == kPrime ? kPrimeImport | kPrimeExport : std::uint64_t{c.capability == kMonotonicTimes};
  return 0;
}

/// Calls that need no file: they ask what the GPU is.
int identify(Node* process, std::size_t g, bool render, unsigned nr, std::byte* args) {
  switch (nr) {
    case kVersion: return version(as<Version>(args));
    case kGetClient: {
      if (render) return EACCES;
      auto& c = as<Client>(args);
      if (c.index != 0) return EINVAL;
      c.auth = 1;
      return 0;
    }
    case kUnique:
    case kMagic:
    case kSetVersion: return render ? EACCES : EINVAL;  // there is no display to be master of
    case kGetCap: return capability(as<Cap>(args));
    case kInfo: return info(process, g, as<const Info>(args));
    default: return EINVAL;
  }
}

bool of_buffers(unsigned nr) noexcept {
  switch (nr) {
    case kGemClose:
    case kPrimeHandleToFd:
    case kPrimeFdToHandle:
    case kGemCreate:
    case kGemMmap:
    case kContext:
    case kGemMetadata:
    case kGemWaitIdle:
    case kGemVa:
    case kGemOp: return true;
    default: return false;
  }
}

int buffers(DrmFile& f, unsigned nr, std::byte* args) {
  switch (nr) {
    case kGemClose: return f.close(as<GemClose>(args).handle);
    case kPrimeHandleToFd: return f.export_fd(as<Prime>(args));
    case kPrimeFdToHandle: return f.import_fd(as<Prime>(args));
    case kGemCreate: return f.create(as<GemCreate>(args));
    case kGemMmap: return f.mmap_offset(as<GemMmap>(args));
    case kContext: return f.context(as<Context>(args));
    case kGemMetadata: return f.metadata(as<GemMetadata>(args));
    case kGemWaitIdle: return f.wait_idle(as<GemWaitIdle>(args));
    case kGemVa: return f.va(as<GemVa>(args));
    case kGemOp: return f.operate(as<GemOp>(args));
    default: return EINVAL;
  }
}

}  // namespace

std::size_t gpu_of_minor(std::uint32_t minor) noexcept {
  const auto& gpus = tree().node().gpus;
  const auto first = gpus.front().render_minor;
  return minor < first ? minor : minor - first;
}

int drm_ioctl(Node* process, const Descriptor& d, unsigned long request, void* argument) {
  const auto& node = tree().node();
  const auto g = gpu_of_minor(minor_of(d));
  const bool render = minor_of(d) >= node.gpus.front().render_minor;
  if (_IOC_TYPE(request) != 'd' || g >= node.gpus.size()) return ENOTTY;
  const auto user = reinterpret_cast<std::uint64_t>(argument);
  alignas(8) std::array<std::byte, kLargestArgs> args{};
  const auto bytes = std::min<std::size_t>(_IOC_SIZE(request), args.size());
  if (!from_user(args.data(), user, bytes)) return EFAULT;
  std::unique_lock<std::mutex> lock;
  if (process) lock = std::unique_lock(process->mutex);
  const auto nr = static_cast<unsigned>(_IOC_NR(request));
  const int error = errno_of([&] {
    if (!of_buffers(nr)) return identify(process, g, render, nr, args.data());
    if (!process || !d.ours) return EBADF;
    return buffers(process->drm_files.file(serial_of(d), static_cast<std::uint32_t>(g)), nr, args.data());
  });
  if (lock.owns_lock()) lock.unlock();
  return error == 0 && !to_user(user, args.data(), bytes) ? EFAULT : error;
}

}  // namespace sdma::emulator
