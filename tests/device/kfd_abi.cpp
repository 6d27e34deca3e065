// SPDX-License-Identifier: MIT
// What lib/device/kfd/thunk.hpp says of libhsakmt's ABI, and kfd_drm.hpp of
// libdrm_amdgpu's, against their headers. Nothing runs: it compiles, or it does not.
#include "../../lib/device/kfd/kfd_drm.hpp"
#include "../../lib/device/kfd/thunk.hpp"

#include <hsakmt.h>

#if __has_include(<libdrm/amdgpu.h>)
#include <libdrm/amdgpu.h>
using DrmGpuInfo = sdma::detail::drm::GpuInfo;
static_assert(offsetof(amdgpu_gpu_info, asic_id) == offsetof(DrmGpuInfo, asic));
static_assert(offsetof(amdgpu_gpu_info, num_shader_engines) == offsetof(DrmGpuInfo, shader_engines));
static_assert(offsetof(amdgpu_gpu_info, gpu_counter_freq) == offsetof(DrmGpuInfo, counter_khz));
static_assert(sizeof(amdgpu_gpu_info) <= sizeof(sdma::detail::thunk::Grown<DrmGpuInfo>));
#endif

using namespace sdma;
namespace t = sdma::detail::thunk;

static_assert(HSAKMT_STATUS_SUCCESS == t::kSuccess && HSAKMT_STATUS_NO_MEMORY == t::kNoMemory &&
              HSAKMT_STATUS_KERNEL_ALREADY_OPENED == t::kAlreadyOpened);
static_assert(HSA_QUEUE_SDMA == t::kQueueSdma && HSA_QUEUE_SDMA_XGMI == t::kQueueSdmaXgmi);
static_assert(HSA_EVENTTYPE_SIGNAL == t::kEventSignal && HSA_HEAPTYPE_MMIO_REMAP == t::kHeapMmioRemap);

constexpr bool is_flag(std::uint32_t ours, auto set) {
  HsaMemFlags f{};
  set(f);
  return __builtin_bit_cast(std::uint32_t, f) == ours;
}
static_assert(sizeof(HsaMemFlags) == sizeof(t::MemoryFlags) && sizeof(HsaMemMapFlags) == sizeof(t::MapFlags));
static_assert(sizeof(HsaVersionInfo) == sizeof(t::Version) &&
              sizeof(HsaSystemProperties) == sizeof(t::SystemProperties));

static_assert(offsetof(HsaNodeProperties, NumCPUCores) == offsetof(t::NodeProperties, cpu_cores));
static_assert(offsetof(HsaNodeProperties, NumFComputeCores) == offsetof(t::NodeProperties, simds));
static_assert(offsetof(HsaNodeProperties, NumMemoryBanks) == offsetof(t::NodeProperties, memory_banks));
static_assert(sizeof(HsaNodeProperties) <= sizeof(t::Grown<t::NodeProperties>));

static_assert(sizeof(HsaMemoryProperties) == sizeof(t::MemoryProperties));
static_assert(offsetof(HsaMemoryProperties, VirtualBaseAddress) == offsetof(t::MemoryProperties, base));

static_assert(sizeof(HsaQueueResource) == sizeof(t::QueueResource));
static_assert(offsetof(HsaQueueResource, Queue_DoorBell) == offsetof(t::QueueResource, doorbell));
static_assert(offsetof(HsaQueueResource, Queue_write_ptr) == offsetof(t::QueueResource, wptr));
static_assert(offsetof(HsaQueueResource, Queue_read_ptr) == offsetof(t::QueueResource, rptr));

static_assert(sizeof(HsaEventDescriptor) == sizeof(t::EventDescriptor));
static_assert(offsetof(HsaEventDescriptor, NodeId) == offsetof(t::EventDescriptor, node));
static_assert(sizeof(HsaEvent) == sizeof(t::Event));
static_assert(offsetof(HsaEvent, EventData.HWData2) == offsetof(t::Event, mailbox));
static_assert(offsetof(HsaEvent, EventData.HWData3) == offsetof(t::Event, trap_context));

#include "support/catch.hpp"

TEST_CASE("libhsakmt's flags are where its headers have them", "[kfd]") {
  CHECK(is_flag(t::kNonPaged, [](auto& f) { f.ui32.NonPaged = 1; }));
  CHECK(is_flag(t::kHostAccess, [](auto& f) { f.ui32.HostAccess = 1; }));
  CHECK(is_flag(t::kNoSubstitute, [](auto& f) { f.ui32.NoSubstitute = 1; }));
  CHECK(is_flag(t::kExecute, [](auto& f) { f.ui32.ExecuteAccess = 1; }));
  CHECK(is_flag(t::kCoarse, [](auto& f) { f.ui32.CoarseGrain = 1; }));
  CHECK(is_flag(t::kNoNumaBind, [](auto& f) { f.ui32.NoNUMABind = 1; }));
  CHECK(is_flag(t::kUncached, [](auto& f) { f.ui32.Uncached = 1; }));
}
