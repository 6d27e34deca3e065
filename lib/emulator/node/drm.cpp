// DRM ioctls of a render node, as libdrm_amdgpu and libhsakmt use them to identify the GPU. Buffers, contexts and submissions
// belong to graphics, and return EINVAL.
#include "../options.hpp"
#include "node.hpp"
#include "user.hpp"

#include "sdma/engine/execute.hpp"

#include <linux/ioctl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace sdma::emulator {
namespace {

enum DrmNr : unsigned {
  kVersion = 0x00,
  kUnique,
  kMagic,
  kGetClient = 0x05,
  kSetVersion = 0x07,
  kGetCap = 0x0c,
  kAmdgpuInfo = 0x45
};
enum Capability : std::uint64_t { kSyncObject = 0x13, kSyncTimeline = 0x14 };
enum Query : std::uint32_t {
  kAccelWorking = 0x00,
  kHwIpInfo = 0x02,
  kHwIpCount = 0x03,
  kTimestamp = 0x05,
  kFwVersion = 0x0e,
  kBytesMoved = 0x0f,
  kVramUsage = 0x10,
  kGttUsage = 0x11,
  kVramGtt = 0x14,
  kReadMmr = 0x15,
  kDevInfo = 0x16,
  kVisibleVramUsage = 0x17,
  kEvictions = 0x18,
  kMemoryInfo = 0x19,
  kCpuPageFaults = 0x1e,
  kVramLost = 0x1f,
};

struct Version {
  std::int32_t major, minor, patch, pad;
  std::uint64_t name_bytes, name, date_bytes, date, text_bytes, text;
};
static_assert(sizeof(Version) == 64);
struct Client {
  std::int32_t index, auth;
  std::uint64_t pid, uid, magic, iocs;
};
struct Info {
  std::uint64_t pointer;
  std::uint32_t bytes, query;
  union {
    struct {
      std::uint32_t dword_offset, count, instance, flags;
    } registers;
    struct {
      std::uint32_t type, instance, index, pad;
    } firmware;
  };
};
static_assert(sizeof(Info) == 32);

struct Cap {
  std::uint64_t capability, value;
};
enum Firmware : std::uint32_t { kFirstFirmware = 0x01, kMec = 0x08, kSdma = 0x0b, kLastFirmware = 0x1a };

/// The driver's numbers of engine types, and its description of one type. There are no graphics rings to submit to.
constexpr std::uint32_t kDmaIp = 2;
struct IpInfo {
  std::uint32_t major, minor;
  std::uint64_t capabilities;
  std::uint32_t buffer_start_alignment, buffer_size_alignment, rings, discovery_version;
};
static_assert(sizeof(IpInfo) == 32);

/// The first part of the kernel's device info. Clients of this node read no more of it.
struct DeviceInfo {
  std::uint32_t device_id, chip_rev, external_rev, pci_rev, family, shader_engines, arrays_each, counter_khz;
  std::uint64_t max_engine_khz, max_memory_khz;
  std::uint32_t cus, cu_ao_mask, cu_bitmap[4][4], rb_pipe_mask, rbs, hw_gfx_contexts, pcie_gen;
  std::uint64_t ids_flags, va_begin, va_end;
  std::uint32_t va_alignment, pte_fragment, gart_page, ce_ram, vram_type, vram_bits;
};

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

int answer(const Info& i, const void* from, std::size_t bytes) {
  return to_user(i.pointer, from, std::min<std::size_t>(bytes, i.bytes)) ? 0 : EFAULT;
}

DeviceInfo device_info(const SysfsGpu& g) {
  DeviceInfo d{};
  d.device_id = g.device_id;
  d.family = 141;  // Vega and later GPUs with its memory controller
  d.external_rev = options().gfx == 90010 ? 0x3c : 0x46;
  d.shader_engines = options().gfx == 90010 ? 8 : 32;
  d.arrays_each = 1;
  d.counter_khz = 100'000;
  d.max_engine_khz = 2'100'000;
  d.max_memory_khz = 1'300'000;
  d.cus = g.compute_units;
  d.va_begin = 0x200000;
  d.va_end = 0x8000'0000'0000;
  d.va_alignment = d.gart_page = 4096;
  d.pte_fragment = 2 << 20;
  d.vram_type = 6;  // HBM
  d.vram_bits = options().gfx == 90010 ? 4096 : 8192;
  return d;
}

/// Returns 0, or an errno for an unknown firmware. Firmware that an accelerator without graphics lacks has version 0.
int firmware(const SysfsGpu& g, std::uint32_t engines, const Info& i, std::uint32_t& version) {
  const auto type = i.firmware.type, index = i.firmware.index;
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
  const auto used = process ? process->memory.gpu(static_cast<std::uint32_t>(index)).used : 0;
  const auto host = process ? process->memory.host_bytes() : vram;
  if (i.bytes == 0 || i.pointer == 0) return EINVAL;
  switch (i.query) {
    case kAccelWorking: {
      const std::uint32_t yes = 1;
      return answer(i, &yes, sizeof yes);
    }
    case kDevInfo: {
      const auto d = device_info(g);
      // The kernel's struct is longer; the rest is zero.
      std::array<std::byte, 512> out{};
      std::memcpy(out.data(), &d, sizeof d);
      return answer(i, out.data(), out.size());
    }
    case kReadMmr: {
      if (i.registers.count > 128) return EINVAL;
      const std::array<std::uint32_t, 128> zeros{};
      return answer(i, zeros.data(), i.registers.count * sizeof zeros[0]);
    }
    case kFwVersion: {
      std::uint32_t versions[2]{};
      if (const int error = firmware(g, engines, i, versions[0])) return error;
      return answer(i, versions, sizeof versions);
    }
    case kHwIpInfo: {
      if (i.firmware.type != kDmaIp) return EINVAL;
      const IpInfo ip{.major = 4,
                      .minor = 4,
                      .capabilities = 0,
                      .buffer_start_alignment = 256,
                      .buffer_size_alignment = 4,
                      .rings = static_cast<std::uint32_t>((std::uint64_t{1} << engines) - 1),
                      .discovery_version = 0};
      return answer(i, &ip, sizeof ip);
    }
    case kHwIpCount: {
      const std::uint32_t n = i.firmware.type == kDmaIp ? engines : 0;
      return answer(i, &n, sizeof n);
    }
    case kTimestamp: {
      const auto now = host_ticks();
      return answer(i, &now, sizeof now);
    }
    case kVramGtt: {
      const std::uint64_t bytes[3] = {vram, vram, host};
      return answer(i, bytes, sizeof bytes);
    }
    case kVisibleVramUsage:
    case kVramUsage: return answer(i, &used, sizeof used);
    case kGttUsage:
    case kBytesMoved:
    case kEvictions:
    case kCpuPageFaults:
    case kVramLost: {
      const std::uint64_t none = 0;
      return answer(i, &none, i.query == kVramLost ? sizeof(std::uint32_t) : sizeof none);
    }
    case kMemoryInfo: {
      const std::uint64_t heaps[12] = {vram, vram - used,  used, vram / 4 * 3, vram, vram - used,
                                       used, vram / 4 * 3, host, host,         0,    host / 4 * 3};
      return answer(i, heaps, sizeof heaps);
    }
    default: return EINVAL;
  }
}

}  // namespace

std::size_t gpu_of_minor(std::uint32_t minor) noexcept {
  const auto& gpus = tree().node().gpus;
  const auto first = gpus.front().render_minor;
  return minor < first ? minor : minor - first;
}

int drm_ioctl(Node* process, std::uint32_t minor, unsigned long request, void* argument) {
  const auto& node = tree().node();
  const auto g = gpu_of_minor(minor);
  const bool render = minor >= node.gpus.front().render_minor;
  if (_IOC_TYPE(request) != 'd' || g >= node.gpus.size()) return ENOTTY;
  const auto user = reinterpret_cast<std::uint64_t>(argument);
  alignas(8) std::array<std::byte, 64> args{};
  const auto bytes = std::min<std::size_t>(_IOC_SIZE(request), args.size());
  if (!from_user(args.data(), user, bytes)) return EFAULT;
  int error = 0;
  switch (_IOC_NR(request)) {
    case kVersion: error = version(*reinterpret_cast<Version*>(args.data())); break;
    case kGetClient: {
      if (render) return EACCES;
      auto& c = *reinterpret_cast<Client*>(args.data());
      if (c.index != 0) return EINVAL;
      c.auth = 1;
      break;
    }
    case kUnique:
    case kMagic:
    case kSetVersion: return render ? EACCES : EINVAL;  // there is no display to be master of
    case kGetCap: {
      auto& c = *reinterpret_cast<Cap*>(args.data());
      if (c.capability == 0 || c.capability > kSyncTimeline) return EINVAL;
      c.value = c.capability == kSyncObject || c.capability == kSyncTimeline;
      break;
    }
    case kAmdgpuInfo: return info(process, g, *reinterpret_cast<const Info*>(args.data()));
    default: return EINVAL;
  }
  return error == 0 && !to_user(user, args.data(), bytes) ? EFAULT : error;
}

}  // namespace sdma::emulator
