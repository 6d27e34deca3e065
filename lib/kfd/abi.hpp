// SPDX-License-Identifier: MIT
#pragma once
// The kernel driver's ioctl interface as bytes: numbers, structs and flags. Code that calls the driver includes this,
// and so does the software node, which implements it.
//
//   CreateQueue args{.ring = ..., .type = kQueueSdmaByEngine, .sdma_engine_id = 3};
//   ioctl(fd, request<CreateQueue>(Nr::create_queue), &args)
//
// <linux/kfd_ioctl.h> cannot be used: the header of a distribution may be older than this interface (Debian 12 stops at
// 1.11, without an engine id in CREATE_QUEUE, and without EXPORT_DMABUF and RUNTIME_ENABLE).
//
//   CREATE_QUEUE   88 bytes until 1.16, 96 with `sdma_engine_id`, of which 1.22 uses all. The ioctl's number contains
//                  the caller's size; the driver reads members that the caller lacks as zero, and does not write them
//                  back.
//
// Sizes are asserted, because they are part of the interface. Plain data; members are zero unless they are set.
#include <linux/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace kfd {

/// The version of the interface that the software node has by default, and the oldest and newest described here.
inline constexpr std::uint32_t kMajor = 1, kMinor = 17, kOldestMinor = 11, kNewestMinor = 23;
inline constexpr std::uint32_t kByEngineMinor = 17;  ///< the first minor version with kQueueSdmaByEngine
inline constexpr std::uint32_t kMetadataMinor = 22;  ///< the first with CreateQueue::metadata_ring_bytes
/// The minor version in a text such as "1.17"; nullopt unless it is one from kOldestMinor to kNewestMinor.
constexpr std::optional<std::uint32_t> minor_of(std::string_view text) noexcept {
  if (text.size() != 4 || !text.starts_with("1.")) return {};
  std::uint32_t n = 0;
  for (const char c : text.substr(2)) {
    if (c < '0' || c > '9') return {};
    n = 10 * n + static_cast<std::uint32_t>(c - '0');
  }
  return n >= kOldestMinor && n <= kNewestMinor ? std::optional(n) : std::nullopt;
}

/// Numbers of the ioctls, type 'K'.
enum class Nr : std::uint8_t {
  get_version = 0x01,
  create_queue,
  destroy_queue,
  set_memory_policy,
  get_clock_counters,
  get_process_apertures,
  update_queue,
  create_event,
  destroy_event,
  set_event,
  reset_event,
  wait_events,
  dbg_register,
  dbg_unregister,
  dbg_address_watch,
  dbg_wave_control,
  set_scratch_backing_va,
  get_tile_config,
  set_trap_handler,
  get_process_apertures_new,
  acquire_vm,
  alloc_memory,
  free_memory,
  map_memory,
  unmap_memory,
  set_cu_mask,
  get_queue_wave_state,
  get_dmabuf_info,
  import_dmabuf,
  alloc_queue_gws,
  smi_events,
  svm,
  set_xnack_mode,
  criu_op,
  available_memory,
  export_dmabuf,
  runtime_enable,
  dbg_trap,
  create_process,
  profiler,
  end,
  // Only the driver that ROCm ships with its libraries has it; the kernel's own has not.
  ipc_import = 0x80,
  ipc_export,
};
static_assert(static_cast<int>(Nr::profiler) == 0x28);
/// The number that follows the last ioctl of a minor version.
constexpr unsigned end_of(std::uint32_t minor) noexcept {
  const auto last = minor < 12   ? Nr::available_memory
                    : minor < 13 ? Nr::export_dmabuf
                    : minor < 19 ? Nr::dbg_trap
                    : minor < 23 ? Nr::create_process
                                 : Nr::profiler;
  return static_cast<unsigned>(last) + 1;
}

/// Which way the arguments go, as seen by the driver.
enum Way : std::uint8_t { kNone = _IOC_NONE, kIn = _IOC_WRITE, kOut = _IOC_READ, kBoth = kIn | kOut };
/// What a program passes to ioctl. `bytes`: as much of the arguments as the caller knows.
constexpr unsigned long request(Nr nr, Way way, std::size_t bytes) noexcept {
  return _IOC(way, 'K', static_cast<unsigned>(nr), bytes);
}
template <class Args> constexpr unsigned long request(Nr nr, Way way = kBoth) noexcept {
  return request(nr, way, sizeof(Args));
}

struct GetVersion {
  std::uint32_t major{}, minor{};
};

inline constexpr std::uint64_t kDoorbellBytes = 8192;  ///< of a process on one GPU: 1024 doorbells of 64 bits

enum QueueType : std::uint32_t {
  kQueueCompute = 0,
  kQueueSdma = 1,
  kQueueComputeAql = 2,
  kQueueSdmaXgmi = 3,
  kQueueSdmaByEngine = 4,
};
inline constexpr std::uint32_t kMaxPercentage = 100, kMaxPriority = 15, kMinRingBytes = 1024;
inline constexpr std::uint32_t kMaxQueues = 1024;  ///< of one process
struct CreateQueue {
  std::uint64_t ring{}, wptr{}, rptr{}, doorbell_offset{};
  std::uint32_t ring_bytes{}, gpu_id{}, type{}, percentage{}, priority{}, queue_id{};
  std::uint64_t eop{}, eop_bytes{}, save_area{};
  std::uint32_t save_area_bytes{}, control_stack_bytes{};
  std::uint32_t sdma_engine_id{};
  std::uint32_t metadata_ring_bytes{};  ///< of kQueueComputeAql: of a second ring after the first. Padding before 1.22
};
static_assert(sizeof(CreateQueue) == 96 && offsetof(CreateQueue, sdma_engine_id) == 88);
struct DestroyQueue {
  std::uint32_t queue_id{}, pad{};
};
struct UpdateQueue {
  std::uint64_t ring{};
  std::uint32_t queue_id{}, ring_bytes{}, percentage{}, priority{};
};
struct SetCuMask {
  std::uint32_t queue_id{}, bits{};
  std::uint64_t mask{};
};

struct SetMemoryPolicy {
  std::uint64_t alternate_base{}, alternate_bytes{};
  std::uint32_t gpu_id{}, default_policy{}, alternate_policy{};
  std::uint32_t process_flags{};  ///< of this GPU's kernels (precision of matrix units). Padding before 1.18
};
struct GetClockCounters {
  std::uint64_t gpu{}, cpu{}, system{}, system_frequency{};
  std::uint32_t gpu_id{}, pad{};
};
struct Aperture {
  std::uint64_t lds_base{}, lds_limit{}, scratch_base{}, scratch_limit{}, gpuvm_base{}, gpuvm_limit{};
  std::uint32_t gpu_id{}, pad{};
};
static_assert(sizeof(Aperture) == 56);
struct GetApertures {
  Aperture apertures[7]{};
  std::uint32_t nodes{}, pad{};
};
struct GetAperturesNew {
  std::uint64_t apertures{};
  std::uint32_t nodes{}, pad{};
};

enum EventType : std::uint32_t {
  kEventSignal = 0,
  kEventHwException = 3,
  kEventDebug = 5,
  kEventMemory = 8,
};
inline constexpr std::uint32_t kSignalEvents = 4096;
enum WaitResult : std::uint32_t { kWaitComplete = 0, kWaitTimeout = 1, kWaitFail = 2 };
struct CreateEvent {
  std::uint64_t page_offset{};
  std::uint32_t trigger_data{}, type{}, auto_reset{}, node_id{}, event_id{}, slot{};
};
static_assert(sizeof(CreateEvent) == 32);
struct EventId {
  std::uint32_t event_id{}, pad{};
};
// Members of a union: EventData sets them to zero.
struct MemoryException {
  std::uint32_t not_present, read_only, no_execute, imprecise;
  std::uint64_t va;
  std::uint32_t gpu_id, error_type;
};
struct HwException {
  std::uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};
struct EventData {
  union {
    MemoryException memory{};
    HwException exception;
    std::uint64_t last_age;
  };
  std::uint64_t ext{};
  std::uint32_t event_id{}, pad{};
};
static_assert(sizeof(EventData) == 48);
struct WaitEvents {
  std::uint64_t events{};
  std::uint32_t count{}, wait_for_all{}, timeout_ms{}, result{};
};
static_assert(sizeof(WaitEvents) == 24);

/// GET_QUEUE_WAVE_STATE. `control_stack`: where the driver stores a WaveStateHeader, and then the control stack.
struct QueueWaveState {
  std::uint64_t control_stack{};
  std::uint32_t control_stack_used{}, save_area_used{}, queue_id{}, pad{};
};
static_assert(sizeof(QueueWaveState) == 24);
struct WaveStateHeader {
  std::uint32_t control_stack_offset{}, control_stack_bytes{}, wave_state_offset{}, wave_state_bytes{};
};

struct ScratchBacking {
  std::uint64_t va{};
  std::uint32_t gpu_id{}, pad{};
};
struct GetTileConfig {
  std::uint64_t tiles{}, macro_tiles{};
  std::uint32_t tile_count{}, macro_tile_count{}, gpu_id{}, gb_addr_config{}, banks{}, ranks{};
};
struct SetTrapHandler {
  std::uint64_t tba{}, tma{};
  std::uint32_t gpu_id{}, pad{};
};
struct AcquireVm {
  std::uint32_t drm_fd{}, gpu_id{};
};

enum MemoryFlags : std::uint32_t {
  kVram = 1u << 0,
  kGtt = 1u << 1,
  kUserptr = 1u << 2,
  kDoorbell = 1u << 3,
  kMmioRemap = 1u << 4,
  kAqlQueue = 1u << 27,
  kPublic = 1u << 29,
  kExecutable = 1u << 30,
  kWritable = 1u << 31,
};
struct AllocMemory {
  std::uint64_t va{}, bytes{}, handle{}, mmap_offset{};
  std::uint32_t gpu_id{}, flags{};
};
struct FreeMemory {
  std::uint64_t handle{};
};
struct MapMemory {
  std::uint64_t handle{}, gpu_ids{};
  std::uint32_t count{}, done{};
};
struct AvailableMemory {
  std::uint64_t bytes{};
  std::uint32_t gpu_id{}, pad{};
};
struct GetDmabufInfo {
  std::uint64_t bytes{}, metadata{};
  std::uint32_t metadata_bytes{}, gpu_id{}, flags{}, fd{};
};
struct ImportDmabuf {
  std::uint64_t va{}, handle{};
  std::uint32_t gpu_id{}, fd{};
};
struct ExportDmabuf {
  std::uint64_t handle{};
  std::uint32_t flags{}, fd{};
};
struct ImportIpc {
  std::uint64_t handle{}, va{}, mmap_offset{};
  std::uint32_t shared[4]{};
  std::uint32_t gpu_id{}, flags{};
};
static_assert(sizeof(ImportIpc) == 48);
struct ExportIpc {
  std::uint64_t handle{};
  std::uint32_t shared[4]{};
  std::uint32_t gpu_id{}, flags{};
};
static_assert(sizeof(ExportIpc) == 32);
struct AllocQueueGws {
  std::uint32_t queue_id{}, count{}, first{}, pad{};
};
struct SetXnackMode {
  std::int32_t enabled{};
};
/// SVM: attributes of ranges of the program's own memory. An array of SvmAttribute follows the arguments.
enum class SvmOp : std::uint32_t { set, get };
enum class SvmKind : std::uint32_t {
  preferred_location,
  prefetch_location,
  access,           ///< value: gpu_id
  access_in_place,  ///< value: gpu_id
  no_access,        ///< value: gpu_id
  set_flags,
  clear_flags,
  granularity,
};
enum SvmFlags : std::uint32_t { kSvmHostAccess = 1, kSvmCoherent = 2, kSvmGpuReadOnly = 8 };
inline constexpr std::uint32_t kSvmSystemMemory = 0, kSvmUndefined = ~0u;  ///< locations beside gpu_ids
struct SvmAttribute {
  SvmKind kind{};
  std::uint32_t value{};
};
struct Svm {
  std::uint64_t begin{}, bytes{};
  SvmOp op{};
  std::uint32_t count{};
};
static_assert(sizeof(Svm) == 24);

struct SmiEvents {
  std::uint32_t gpu_id{}, fd{};
};
enum class ProfilerOp : std::uint32_t { counters, pc_sample, version };
inline constexpr std::uint32_t kProfilerVersion = 1;
// Members of a union: Profiler sets them to zero.
struct ProfilerCounters {
  std::uint32_t gpu_id, lock, enable;
};
struct Profiler {
  std::uint32_t op{}, pad{};
  union {
    std::uint32_t all[8]{};
    ProfilerCounters counters;
    std::uint32_t version;
  };
};
static_assert(sizeof(Profiler) == 40);
enum RuntimeMode : std::uint32_t { kRuntimeOn = 1, kRuntimeTtmps = 2 };
struct RuntimeEnable {
  std::uint64_t r_debug{};
  std::uint32_t mode{}, capabilities{};
};

/// What a debugger asks of a process, or does to it (DBG_TRAP).
enum class DebugOp : std::uint32_t {
  enable,
  disable,
  send_runtime_event,
  set_exceptions_enabled,
  set_wave_launch_override,
  set_wave_launch_mode,
  suspend_queues,
  resume_queues,
  set_address_watch,
  clear_address_watch,
  set_flags,
  query_debug_event,
  query_exception_info,
  queue_snapshot,
  device_snapshot,
};
inline constexpr std::uint32_t kDebugMinor = 13;  ///< the first minor version with DBG_TRAP and RUNTIME_ENABLE
/// The bit of an exception in masks and in the status of a queue, a device or a process.
constexpr std::uint64_t exception_bit(unsigned code) noexcept { return std::uint64_t{1} << (code - 1); }
enum ExceptionCode : unsigned {
  kExceptionQueueNew = 31,
  kExceptionMemoryViolation = 33,
  kExceptionDeviceNew = 36,
  kExceptionRuntime = 48,
};
enum RuntimeState : std::uint32_t { kRuntimeDisabled = 0, kRuntimeEnabled = 1 };
struct RuntimeInfo {
  std::uint64_t r_debug{};
  std::uint32_t state{}, ttmps{};
};
static_assert(sizeof(RuntimeInfo) == 16);
// Members of a union: DebugTrap sets them to zero.
struct DebugEnable {
  std::uint64_t exceptions, info;  ///< info: where a RuntimeInfo is stored
  std::uint32_t info_bytes, fd;    ///< fd: gets a byte for each exception of the mask
};
struct DebugEvent {  // of SEND_RUNTIME_EVENT and QUERY_DEBUG_EVENT
  std::uint64_t exceptions;
  std::uint32_t gpu_id, queue_id;
};
struct DebugSnapshot {  // of queues and of devices
  std::uint64_t clear, entries;
  std::uint32_t count, entry_bytes;
};
struct DebugSuspend {
  std::uint64_t exceptions, ids;  ///< ids: an array of queue numbers; the call returns how many it has suspended
  std::uint32_t count, grace;
};
struct DebugResume {
  std::uint64_t ids;
  std::uint32_t count, pad;
};
/// In the array: the queue does not exist, or a debugger has not yet heard of it.
inline constexpr std::uint32_t kDebugQueueInvalid = 1u << 31;
struct DebugTrap {
  std::uint32_t pid{}, op{};
  union {
    DebugEnable enable{};
    DebugEvent event;
    std::uint64_t exceptions;
    DebugSnapshot snapshot;
    DebugSuspend suspend;
    DebugResume resume;
  };
};
static_assert(sizeof(DebugTrap) == 32);
struct QueueEntry {
  std::uint64_t exceptions{}, ring{}, wptr{}, rptr{}, save_area{};
  std::uint32_t queue_id{}, gpu_id{}, ring_bytes{}, type{}, save_area_bytes{}, pad{};
};
static_assert(sizeof(QueueEntry) == 64);
struct DeviceEntry {
  std::uint64_t exceptions{};
  std::uint64_t lds_base{}, lds_limit{}, scratch_base{}, scratch_limit{}, gpuvm_base{}, gpuvm_limit{};
  std::uint32_t gpu_id{}, location_id{}, vendor_id{}, device_id{}, revision_id{}, subsystem_vendor_id{};
  std::uint32_t subsystem_device_id{}, firmware{}, gfx_target{}, simds{}, waves_per_simd{}, arrays{};
  std::uint32_t arrays_per_engine{}, xccs{}, capability{}, debug_properties{};
};
static_assert(sizeof(DeviceEntry) == 120);

}}}  // namespace sdma::v0_3::kfd
