// SPDX-License-Identifier: MIT
#pragma once
// The part of the DRM ioctl interface that identifies a GPU, and that allocates, shares and maps buffers: its numbers,
// structs and queries. Both sides include it: code that asks a render node, and the software node, which answers.
//
//   Info question{.pointer = address of the answer, .bytes = its size, .query = kDevInfo};
//   ioctl(render, kInfoRequest, &question)
//
// <drm/amdgpu_drm.h> is not used, because not every system installs it
// with libc's headers. Plain data; members are zero unless they are set.
#include <linux/ioctl.h>

#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace drm {

/// Numbers of the ioctls, type 'd'.
enum Nr : unsigned {
  kVersion = 0x00,
  kUnique,
  kMagic,
  kGetClient = 0x05,
  kSetVersion = 0x07,
  kGemClose = 0x09,
  kGetCap = 0x0c,
  kPrimeHandleToFd = 0x2d,
  kPrimeFdToHandle = 0x2e,
  kGemCreate = 0x40,
  kGemMmap = 0x41,
  kContext = 0x42,
  kInfo = 0x45,
  kGemMetadata = 0x46,
  kGemWaitIdle = 0x47,
  kGemVa = 0x48,
  kGemOp = 0x50
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
enum Capability : std::uint64_t { kPrime = 0x05, kMonotonicTimes = 0x06, kSyncTimeline = 0x14 };
inline constexpr std::uint64_t kPrimeImport = 1, kPrimeExport = 2;
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

struct GemClose {
  std::uint32_t handle{}, pad{};
};
inline constexpr std::uint32_t kPrimeCloexec = 02000000, kPrimeWritable = 02;  ///< O_CLOEXEC and O_RDWR
struct Prime {
  std::uint32_t handle{}, flags{};
  std::int32_t fd{};
};
static_assert(sizeof(Prime) == 12);

enum Domain : std::uint32_t { kDomainCpu = 1, kDomainGtt = 2, kDomainVram = 4, kDomainsOfEngines = 0x38 };
enum CreateFlag : std::uint32_t {
  kCpuAccessRequired = 1u << 0,
  kNoCpuAccess = 1u << 1,
  kCpuGttUswc = 1u << 2,
  kVramCleared = 1u << 3,
  kVmAlwaysValid = 1u << 6,
  kExplicitSync = 1u << 7,
  kDiscardable = 1u << 12,
};
/// The description of a buffer; GEM_OP returns it. GEM_CREATE's answer, a handle, takes the place of `bytes`.
struct GemCreate {
  std::uint64_t bytes{}, alignment{}, domains{}, flags{};
};
static_assert(sizeof(GemCreate) == 32);
/// The offset takes the place of the handle.
struct GemMmap {
  std::uint64_t handle_then_offset{};
};
struct GemMetadata {
  static constexpr std::uint32_t kSet = 1, kGet = 2;
  std::uint32_t handle{}, op{};
  std::uint64_t flags{}, tiling{};
  std::uint32_t bytes{}, data[64]{}, pad{};
};
static_assert(sizeof(GemMetadata) == 288);
/// The status (0: idle) and the domain take the place of the handle and the flags.
struct GemWaitIdle {
  std::uint32_t handle_then_status{}, flags_then_domain{};
  std::uint64_t timeout{};
};
struct GemOp {
  static constexpr std::uint32_t kGetCreateInfo = 0, kSetPlacement = 1;
  std::uint32_t handle{}, op{};
  std::uint64_t value{};
};
enum VaOperation : std::uint32_t { kVaMap = 1, kVaUnmap = 2, kVaClear = 3, kVaReplace = 4 };
enum VaFlag : std::uint32_t {
  kVaDelayUpdate = 1u << 0,
  kVaReadable = 1u << 1,
  kVaWriteable = 1u << 2,
  kVaExecutable = 1u << 3,
  kVaPartiallyResident = 1u << 4,
  kVaMemoryTypes = 0xfu << 5,
  kVaNoAlloc = 1u << 9,
};
struct GemVa {
  std::uint32_t handle{}, pad{}, operation{}, flags{};
  std::uint64_t va{}, offset{}, bytes{};
};
static_assert(sizeof(GemVa) == 40);

/// The answers take the place of `op`: the id of a new context, or its state, or its clocks.
struct Context {
  static constexpr std::uint32_t kAllocate = 1, kFree = 2, kQueryState = 3, kQueryState2 = 4, kGetClocks = 5,
                                 kSetClocks = 6;
  static constexpr std::uint32_t kClocksMask = 0xf, kHighestClocks = 4;
  static constexpr std::int32_t kNormalPriority = 0, kHighestPriority = 1023;
  std::uint32_t op{}, flags{}, id{};
  std::int32_t priority{};
};
static_assert(sizeof(Context) == 16);

}}}  // namespace sdma::v0_3::drm
