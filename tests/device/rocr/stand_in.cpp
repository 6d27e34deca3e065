// SPDX-License-Identifier: MIT
// A ROCr of ours, with the calls that a device over ROCr makes, on Debian's libhsakmt: for GPUs that Debian's ROCr does
// not know. queue_create.cpp or earlier.cpp gives it its queues. It contains no agent code, and executes nothing
// itself. What it recommends between GPUs is engine 7, so that a test can see whose recommendation a device has.
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>
#include <hsakmt.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace {

constexpr hsa_status_t kOk = HSA_STATUS_SUCCESS, kBad = HSA_STATUS_ERROR_INVALID_ARGUMENT;
constexpr std::uint32_t kFlush = HSA_AMD_AGENT_INFO_HDP_FLUSH, kNode = HSA_AMD_AGENT_INFO_DRIVER_NODE_ID;

/// Handles of agents and pools are the numbers of their nodes, plus 1; a coarse-grained pool has kCoarse, too.
constexpr std::uint64_t kCoarse = 1 << 16;
std::uint32_t node_of(std::uint64_t handle) { return static_cast<std::uint32_t>(handle & 0xffff) - 1; }

struct Range {
  std::size_t bytes{};
  std::uint32_t owner{};
  bool locked{}, coarse{};
  std::vector<std::uint32_t> nodes{};  ///< GPUs that may access it
};
struct State {
  std::mutex mutex;
  int users = 0;
  std::vector<bool> gpu;  ///< by node
  std::map<std::uint64_t, Range> ranges;
  std::map<std::uint64_t, HsaEvent*> signals;
  hsa_status_t (*handler)(const hsa_amd_event_t*, void*) = nullptr;
  void* handler_data{};
  std::atomic<bool> watching{false};
  std::thread watcher;
};
State& state() {
  static auto* const s = new State;
  return *s;
}

bool good(HSAKMT_STATUS s) { return s == HSAKMT_STATUS_SUCCESS; }

bool map_to(std::uint64_t at, const Range& r) {
  (void)hsaKmtUnmapMemoryToGPU(reinterpret_cast<void*>(at));
  HSAuint64 va = 0;
  auto nodes = r.nodes;
  return nodes.empty() || good(hsaKmtMapMemoryToGPUNodes(reinterpret_cast<void*>(at), r.bytes, &va, HsaMemMapFlags{},
                                                         nodes.size(), nodes.data()));
}

/// As ROCr's thread: tells its handler of memory faults.
void watch() {
  HsaEventDescriptor d{};
  d.EventType = HSA_EVENTTYPE_MEMORY;
  HsaEvent* e = nullptr;
  if (!good(hsaKmtCreateEvent(&d, false, false, &e))) return;
  while (state().watching) {
    if (!good(hsaKmtWaitOnEvent(e, 20))) continue;
    const auto& m = e->EventData.EventData.MemoryAccessFault;
    hsa_amd_event_t told{};
    told.event_type = HSA_AMD_GPU_MEMORY_FAULT_EVENT;
    told.memory_fault.agent = {m.NodeId + 1};
    told.memory_fault.virtual_address = m.VirtualAddress;
    told.memory_fault.fault_reason_mask = static_cast<std::uint32_t>(
        m.Failure.ReadOnly ? HSA_AMD_MEMORY_FAULT_READ_ONLY : HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT);
    if (state().handler) (void)state().handler(&told, state().handler_data);
  }
  (void)hsaKmtDestroyEvent(e);
}

std::map<std::uint64_t, Range>::iterator range_of(std::uint64_t at) {
  auto& all = state().ranges;
  auto it = all.upper_bound(at);
  return it != all.begin() && at - std::prev(it)->first < std::prev(it)->second.bytes ? std::prev(it) : all.end();
}

}  // namespace

extern "C" {

hsa_status_t hsa_init() {
  const std::lock_guard lock(state().mutex);
  if (state().users++ != 0) return kOk;
  HsaSystemProperties system{};
  if (!good(hsaKmtOpenKFD()) || !good(hsaKmtAcquireSystemProperties(&system))) {
    state().users = 0;
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  state().gpu.clear();
  for (std::uint32_t n = 0; n < system.NumNodes; ++n) {
    HsaNodeProperties p{};
    (void)hsaKmtGetNodeProperties(n, &p);
    state().gpu.push_back(p.NumFComputeCores != 0);
  }
  state().watching = true;
  state().watcher = std::thread(watch);
  return kOk;
}

hsa_status_t hsa_shut_down() {
  {
    const std::lock_guard lock(state().mutex);
    if (state().users == 0) return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (--state().users != 0) return kOk;
    state().watching = false;
    state().handler = nullptr;
  }
  state().watcher.join();
  (void)hsaKmtCloseKFD();
  return kOk;
}

hsa_status_t hsa_status_string(hsa_status_t s, const char** out) {
  *out = s == HSA_STATUS_ERROR_OUT_OF_RESOURCES ? "out of resources" : "a status";
  return kOk;
}

hsa_status_t hsa_system_get_info(hsa_system_info_t, void* out) {
  *static_cast<std::uint16_t*>(out) = 1;
  return kOk;
}

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  for (std::size_t n = 0; n < state().gpu.size(); ++n)
    if (const auto s = callback({n + 1}, data); s != kOk) return s;
  return kOk;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t a, hsa_agent_info_t attribute, void* out) {
  std::uint32_t which = 0;
  std::memcpy(&which, &attribute, sizeof which);
  if (node_of(a.handle) >= state().gpu.size()) return HSA_STATUS_ERROR_INVALID_AGENT;
  const std::uint32_t values[] = {state().gpu[node_of(a.handle)] ? 1u : 0u, node_of(a.handle)};
  if (which == HSA_AGENT_INFO_DEVICE) return std::memcpy(out, &values[0], 4), kOk;
  if (which == kNode) return std::memcpy(out, &values[1], 4), kOk;
  return which == kFlush ? (std::memset(out, 0, sizeof(hsa_amd_hdp_flush_t)), kOk) : kBad;
}

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t a, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*),
                                                void* data) {
  if (state().gpu[node_of(a.handle)])
    if (const auto s = callback({a.handle | kCoarse}, data); s != kOk) return s;
  return callback({a.handle}, data);
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t p, hsa_amd_memory_pool_info_t which, void* out) {
  const std::uint32_t flags = (p.handle & kCoarse) != 0 ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED
                                                        : HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
  const std::uint32_t segment = HSA_AMD_SEGMENT_GLOBAL;
  switch (which) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT: std::memcpy(out, &segment, 4); return kOk;
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: std::memcpy(out, &flags, 4); return kOk;
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: *static_cast<bool*>(out) = true; return kOk;
    default: return kBad;
  }
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t, hsa_amd_memory_pool_t, hsa_amd_agent_memory_pool_info_t,
                                                void* out) {
  const std::uint32_t access = HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT;
  std::memcpy(out, &access, 4);
  return kOk;
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags, void** out) {
  const auto node = node_of(pool.handle);
  const bool gpu = state().gpu[node], coarse = (pool.handle & kCoarse) != 0;
  HsaMemFlags f{};
  f.ui32.HostAccess = 1;
  f.ui32.NonPaged = f.ui32.NoSubstitute = gpu;
  f.ui32.CoarseGrain = coarse;
  bytes = (bytes + 4095) & ~std::size_t{4095};
  if (flags != 0 || bytes == 0 || !good(hsaKmtAllocMemory(node, bytes, f, out)))
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  Range r{.bytes = bytes, .owner = node, .locked = false, .coarse = coarse};
  if (gpu) r.nodes.push_back(node);
  const auto at = reinterpret_cast<std::uint64_t>(*out);
  (void)map_to(at, r);
  const std::lock_guard lock(state().mutex);
  state().ranges.emplace(at, r);
  return kOk;
}

hsa_status_t hsa_amd_memory_pool_free(void* p) {
  const std::lock_guard lock(state().mutex);
  const auto r = state().ranges.extract(reinterpret_cast<std::uint64_t>(p));
  if (!r) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  (void)hsaKmtUnmapMemoryToGPU(p);
  return good(hsaKmtFreeMemory(p, r.mapped().bytes)) ? kOk : HSA_STATUS_ERROR;
}

/// The list replaces the former one, but the owner keeps its access.
hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t* agents, const uint32_t*, const void* p) {
  const std::lock_guard lock(state().mutex);
  const auto it = state().ranges.find(reinterpret_cast<std::uint64_t>(p));
  if (it == state().ranges.end() || it->second.locked) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  auto& r = it->second;
  r.nodes.clear();
  if (state().gpu[r.owner]) r.nodes.push_back(r.owner);
  for (std::uint32_t i = 0; i < count; ++i)
    if (const auto n = node_of(agents[i].handle); state().gpu[n] && n != r.owner) r.nodes.push_back(n);
  return map_to(it->first, r) ? kOk : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_memory_lock(void* p, size_t bytes, hsa_agent_t* agents, int count, void** out) {
  Range r{.bytes = bytes, .owner = 0, .locked = true, .coarse = false};
  for (int i = 0; i < count; ++i) r.nodes.push_back(node_of(agents[i].handle));
  auto nodes = r.nodes;
  const auto at = reinterpret_cast<std::uint64_t>(p);
  if (!good(hsaKmtRegisterMemoryToNodes(p, bytes, nodes.size(), nodes.data()))) return HSA_STATUS_ERROR;
  if (!map_to(at, r)) {
    (void)hsaKmtDeregisterMemory(p);
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  const std::lock_guard lock(state().mutex);
  state().ranges.emplace(at, r);
  *out = p;
  return kOk;
}

hsa_status_t hsa_amd_memory_unlock(void* p) {
  const std::lock_guard lock(state().mutex);
  if (!state().ranges.extract(reinterpret_cast<std::uint64_t>(p))) return kBad;
  (void)hsaKmtUnmapMemoryToGPU(p);
  return good(hsaKmtDeregisterMemory(p)) ? kOk : HSA_STATUS_ERROR;
}

hsa_status_t hsa_amd_pointer_info(const void* p, hsa_amd_pointer_info_t* info, void* (*allocate)(size_t),
                                  uint32_t* count, hsa_agent_t** accessible) {
  const std::lock_guard lock(state().mutex);
  const auto it = range_of(reinterpret_cast<std::uint64_t>(p));
  if (it == state().ranges.end()) {
    info->type = HSA_EXT_POINTER_TYPE_UNKNOWN;
    *count = 0;
    return kOk;
  }
  const auto& r = it->second;
  info->type = r.locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
  info->agentBaseAddress = info->hostBaseAddress = reinterpret_cast<void*>(it->first);
  info->sizeInBytes = r.bytes;
  info->agentOwner = {r.owner + 1};
  *count = static_cast<uint32_t>(r.nodes.size());
  *accessible = static_cast<hsa_agent_t*>(allocate(sizeof(hsa_agent_t) * std::max<std::size_t>(r.nodes.size(), 1)));
  for (std::size_t i = 0; i < r.nodes.size(); ++i) (*accessible)[i] = {r.nodes[i] + 1};
  return kOk;
}

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t, const hsa_agent_t*, hsa_signal_t* out) {
  HsaEventDescriptor d{};
  d.EventType = HSA_EVENTTYPE_SIGNAL;
  d.NodeId = 1;
  HsaEvent* e = nullptr;
  if (!good(hsaKmtCreateEvent(&d, false, false, &e))) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  auto* s = new (std::align_val_t{64}) amd_signal_t{};
  s->kind = AMD_SIGNAL_KIND_USER;
  s->value = value;
  s->event_mailbox_ptr = e->EventData.HWData2;
  s->event_id = e->EventId;
  *out = {reinterpret_cast<std::uint64_t>(s)};
  const std::lock_guard lock(state().mutex);
  state().signals.emplace(out->handle, e);
  return kOk;
}

hsa_status_t hsa_signal_destroy(hsa_signal_t s) {
  const std::lock_guard lock(state().mutex);
  const auto e = state().signals.extract(s.handle);
  if (!e) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  (void)hsaKmtDestroyEvent(e.mapped());
  ::operator delete (reinterpret_cast<amd_signal_t*>(s.handle), std::align_val_t{64});
  return kOk;
}

hsa_status_t hsa_amd_register_system_event_handler(hsa_status_t (*handler)(const hsa_amd_event_t*, void*), void* data) {
  state().handler_data = data;
  state().handler = handler;
  return kOk;
}

hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t, hsa_agent_t, uint32_t* mask) {
  *mask = 1u << 7;
  return kOk;
}
}
