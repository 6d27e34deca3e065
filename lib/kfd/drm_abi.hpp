#pragma once
// The part of the DRM ioctl interface that identifies a GPU: its numbers, structs and queries. Both sides include it: code that
// asks a render node, and the software node, which answers.
//
//   Info question{.pointer = address of the answer, .bytes = its size, .query = kDevInfo};
//   ioctl(render, kInfoRequest, &question)
//
// <drm/amdgpu_drm.h> is not used, because not every system installs it with libc's headers. Plain data; members are zero unless
// they are set.
#include <linux/ioctl.h>

#include <cstdint>

namespace sdma::inline v0::drm {

/// Numbers of the ioctls, type 'd'.
enum Nr : unsigned {
  kVersion = 0x00,
  kUnique,
  kMagic,
  kGetClient = 0x05,
  kSetVersion = 0x07,
  kGetCap = 0x0c,
  kInfo = 0x45
};

/// For each text: the address of a buffer, and its size, which the driver replaces with the length of the text.
struct Version {
  std::int32_t major{}, minor{}, patch{}, pad{};
  std::uint64_t name_bytes{}, name{}, date_bytes{}, date{}, text_bytes{}, text{};
};
static_assert(sizeof(Version) == 64);
struct Client {
  std::int32_t index{}, auth{};
  std::uint64_t pid{}, uid{}, magic{}, iocs{};
};
enum Capability : std::uint64_t { kSyncObject = 0x13, kSyncTimeline = 0x14 };
struct Cap {
  std::uint64_t capability{}, value{};
};

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
/// Kinds of firmware.
enum Firmware : std::uint32_t { kFirstFirmware = 0x01, kMec = 0x08, kSdma = 0x0b, kLastFirmware = 0x1a };
struct Info {
  std::uint64_t pointer{};  ///< of the answer
  std::uint32_t bytes{}, query{};
  std::uint32_t type{};      ///< of the firmware or the engine; for registers: the first register
  std::uint32_t instance{};  ///< for registers: how many
  std::uint32_t index{}, pad{};
};
static_assert(sizeof(Info) == 32);

inline constexpr unsigned long kVersionRequest = _IOWR('d', kVersion, Version), kInfoRequest = _IOW('d', kInfo, Info);

/// The first part of the answer to kDevInfo, which has 512 bytes or more.
struct DeviceInfo {
  std::uint32_t device_id{}, chip_rev{}, external_rev{}, pci_rev{}, family{}, shader_engines{}, arrays_each{},
      counter_khz{};
  std::uint64_t max_engine_khz{}, max_memory_khz{};
  std::uint32_t cus{}, cu_ao_mask{}, cu_bitmap[4][4]{}, rb_pipe_mask{}, rbs{}, hw_gfx_contexts{}, pcie_gen{};
  std::uint64_t ids_flags{}, va_begin{}, va_end{};
  std::uint32_t va_alignment{}, pte_fragment{}, gart_page{}, ce_ram{}, vram_type{}, vram_bits{};
};

}  // namespace sdma::inline v0::drm
