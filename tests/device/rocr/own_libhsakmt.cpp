// SPDX-License-Identifier: MIT
// What the KFD device sees of a ROCr that contains its libhsakmt: a library of this name that links to no other, and
// gives away no queues.
namespace {
int nothing() { return 0x1000; }
}  // namespace

#define SDMA_CALL(name) \
  extern "C" int name() { return nothing(); }
extern "C" int hsa_init() { return 0; }
extern "C" int hsa_system_get_info(int, unsigned short* out) { return *out = 1, 0; }
SDMA_CALL(hsa_shut_down)
SDMA_CALL(hsa_status_string)
SDMA_CALL(hsa_iterate_agents)
SDMA_CALL(hsa_agent_get_info)
SDMA_CALL(hsa_amd_agent_iterate_memory_pools)
SDMA_CALL(hsa_amd_memory_pool_get_info)
SDMA_CALL(hsa_amd_agent_memory_pool_get_info)
SDMA_CALL(hsa_amd_memory_pool_allocate)
SDMA_CALL(hsa_amd_memory_pool_free)
SDMA_CALL(hsa_amd_agents_allow_access)
SDMA_CALL(hsa_amd_memory_lock)
SDMA_CALL(hsa_amd_memory_unlock)
SDMA_CALL(hsa_amd_pointer_info)
SDMA_CALL(hsa_signal_create)
SDMA_CALL(hsa_signal_destroy)
SDMA_CALL(hsa_amd_register_system_event_handler)
SDMA_CALL(hsa_queue_destroy)
SDMA_CALL(hsa_queue_inactivate)
