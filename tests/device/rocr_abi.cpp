// SPDX-License-Identifier: MIT
// What lib/device/rocr/hsa.hpp states of ROCr's ABI, compared with the headers that are installed.
#include "../../lib/device/rocr/hsa.hpp"

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>

namespace {

namespace r = sdma::detail::rocr;

static_assert(HSA_STATUS_SUCCESS == r::kSuccess && HSA_STATUS_ERROR == r::kNotHandled &&
              HSA_STATUS_ERROR_MEMORY_FAULT == r::kMemoryFault &&
              HSA_STATUS_ERROR_INVALID_QUEUE_CREATION == r::kInvalidQueueCreation &&
              HSA_STATUS_ERROR_OUT_OF_RESOURCES == r::kOutOfResources);
static_assert(HSA_SYSTEM_INFO_VERSION_MAJOR == r::kVersionMajor && HSA_SYSTEM_INFO_VERSION_MINOR == r::kVersionMinor);
static_assert(HSA_AGENT_INFO_DEVICE == r::kDevice && HSA_AMD_AGENT_INFO_DRIVER_NODE_ID == r::kDriverNode &&
              HSA_AMD_AGENT_INFO_HDP_FLUSH == r::kHdpFlush);
static_assert(HSA_DEVICE_TYPE_CPU == r::kCpu && HSA_DEVICE_TYPE_GPU == r::kGpu);
static_assert(HSA_AMD_SEGMENT_GLOBAL == 0 && HSA_AMD_MEMORY_POOL_INFO_SEGMENT == r::kSegment &&
              HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS == r::kGlobalFlags &&
              HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED == r::kMayAllocate);
static_assert(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT == r::kKernarg &&
              HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED == r::kFine &&
              HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED == r::kCoarse);
static_assert(HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS == r::kAccess &&
              HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED == r::kNever);
static_assert(HSA_AMD_MEMORY_FAULT_READ_ONLY == r::kReadOnly && HSA_AMD_GPU_MEMORY_FAULT_EVENT == r::kEventMemoryFault);

static_assert(sizeof(hsa_agent_t) == sizeof(r::Agent) && sizeof(hsa_amd_memory_pool_t) == sizeof(r::Pool) &&
              sizeof(hsa_signal_t) == sizeof(r::SignalHandle));
static_assert(sizeof(hsa_amd_hdp_flush_t) == sizeof(r::HdpFlush) &&
              offsetof(hsa_amd_hdp_flush_t, HDP_MEM_FLUSH_CNTL) == offsetof(r::HdpFlush, memory));
static_assert(HSA_EXT_POINTER_TYPE_HSA == static_cast<int>(r::PointerType::allocated) &&
              HSA_EXT_POINTER_TYPE_LOCKED == static_cast<int>(r::PointerType::locked) &&
              HSA_EXT_POINTER_TYPE_IPC == static_cast<int>(r::PointerType::ipc));
static_assert(sizeof(hsa_amd_pointer_info_t) == sizeof(r::PointerInfo) &&
              offsetof(hsa_amd_pointer_info_t, agentBaseAddress) == offsetof(r::PointerInfo, agent_base) &&
              offsetof(hsa_amd_pointer_info_t, hostBaseAddress) == offsetof(r::PointerInfo, host_base) &&
              offsetof(hsa_amd_pointer_info_t, sizeInBytes) == offsetof(r::PointerInfo, bytes) &&
              offsetof(hsa_amd_pointer_info_t, agentOwner) == offsetof(r::PointerInfo, owner));
static_assert(offsetof(amd_signal_t, kind) == offsetof(r::SignalWords, kind) &&
              offsetof(amd_signal_t, hardware_doorbell_ptr) == offsetof(r::SignalWords, doorbell) &&
              offsetof(amd_signal_t, event_mailbox_ptr) == offsetof(r::SignalWords, mailbox) &&
              offsetof(amd_signal_t, event_id) == offsetof(r::SignalWords, event) &&
              AMD_SIGNAL_KIND_DOORBELL == r::kDoorbell);
static_assert(sizeof(hsa_queue_t) == sizeof(r::HsaQueue) &&
              offsetof(hsa_queue_t, base_address) == offsetof(r::HsaQueue, base) &&
              offsetof(hsa_queue_t, doorbell_signal) == offsetof(r::HsaQueue, doorbell) &&
              offsetof(hsa_queue_t, size) == offsetof(r::HsaQueue, size));
static_assert(offsetof(hsa_amd_event_t, memory_fault.agent) == offsetof(r::SystemEvent, fault.agent) &&
              offsetof(hsa_amd_event_t, memory_fault.virtual_address) == offsetof(r::SystemEvent, fault.address) &&
              offsetof(hsa_amd_event_t, memory_fault.fault_reason_mask) == offsetof(r::SystemEvent, fault.reason));

}  // namespace
