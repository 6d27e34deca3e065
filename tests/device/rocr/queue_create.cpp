// SPDX-License-Identifier: MIT
// hsa_amd_queue_create and what belongs to it, for a ROCr that lacks them: on its own calls and the driver's ioctls.
// Takes only what the interface 1.31 takes: a descriptor with a reserved byte that is not 0 is refused.
// SDMA_TEST_QUEUES: "old-driver" refuses an engine, "forwarded" gives a doorbell that is not the hardware's,
// "destroyed" no longer knows a queue, "version-2" is another interface.
#include "../../../lib/kfd/abi.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace {

namespace kfd = sdma::kfd;

using Callback = void (*)(hsa_status_t, hsa_queue_t*, void*);
struct Descriptor {
  std::uint16_t version, flags;
  std::uint8_t engine_type, reserved_5[3];
  std::uint32_t bytes, priority;
  Callback callback;
  void* callback_data;
  hsa_queue_t* queue;
  std::uint32_t engine, reserved_44[7], traffic_class, reserved_76[5];
};
static_assert(sizeof(Descriptor) == 96);

struct Made {
  hsa_queue_t queue{};
  amd_signal_t bell{};
  hsa_agent_t agent{};
  Descriptor wanted{};
  std::uint32_t id{};
  char *ring{}, *pointers{};
  bool fault_seen = false;
  std::uint64_t fault_at{};
  std::uint32_t fault_reason{};
};

std::mutex mutex;
std::list<Made> all;
std::map<std::uint32_t, char*> doorbells;

bool asked_for(std::string_view what) {
  const char* wish = std::getenv("SDMA_TEST_QUEUES");
  return wish && wish == what;
}

int driver() {
  static const int fd = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
  return fd;
}
template <class A> int ask(kfd::Nr nr, A& args) {
  return ::ioctl(driver(), kfd::request<A>(nr), &args) == 0 ? 0 : errno;
}

std::uint32_t gpu_id(hsa_agent_t agent) {
  std::uint32_t node = 0, id = 0;
  const std::uint32_t driver_node = HSA_AMD_AGENT_INFO_DRIVER_NODE_ID;
  hsa_agent_info_t attribute{};
  std::memcpy(&attribute, &driver_node, sizeof attribute);  // an extension's, outside the enumeration
  (void)hsa_agent_get_info(agent, attribute, &node);
  const auto path = "/sys/devices/virtual/kfd/kfd/topology/nodes/" + std::to_string(node) + "/gpu_id";
  if (auto* f = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(f, "%u", &id) != 1) id = 0;
    std::fclose(f);
  }
  return id;
}

hsa_status_t take_host_pool(hsa_amd_memory_pool_t pool, void* data) {
  std::uint32_t flags = 0;
  (void)hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0) *static_cast<hsa_amd_memory_pool_t*>(data) = pool;
  return HSA_STATUS_SUCCESS;
}
char* host_memory(hsa_agent_t gpu, std::size_t bytes) {
  hsa_amd_memory_pool_t pool{};
  (void)hsa_iterate_agents(
      [](hsa_agent_t a, void* data) {
        hsa_device_type_t type{};
        (void)hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
        if (type == HSA_DEVICE_TYPE_CPU) (void)hsa_amd_agent_iterate_memory_pools(a, take_host_pool, data);
        return HSA_STATUS_SUCCESS;
      },
      &pool);
  void* at = nullptr;
  if (hsa_amd_memory_pool_allocate(pool, bytes, 0, &at) != HSA_STATUS_SUCCESS) return nullptr;
  (void)hsa_amd_agents_allow_access(1, &gpu, nullptr, at);
  std::memset(at, 0, bytes);
  return static_cast<char*>(at);
}

void give_back(Made& m) {
  (void)hsa_amd_memory_pool_free(m.ring);
  (void)hsa_amd_memory_pool_free(m.pointers);
}

hsa_status_t on_event(const hsa_amd_event_t* e, void*) {
  if (e->event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT) return HSA_STATUS_ERROR;
  const std::lock_guard lock(mutex);
  auto status = HSA_STATUS_ERROR;
  for (auto& m : all) {
    if (m.agent.handle != e->memory_fault.agent.handle) continue;
    m.fault_seen = true;
    m.fault_at = e->memory_fault.virtual_address;
    m.fault_reason = e->memory_fault.fault_reason_mask;
    status = HSA_STATUS_SUCCESS;
  }
  return status;
}
/// Callbacks come without the lock, because they ask for the attributes.
hsa_status_t tell(const hsa_amd_event_t* e, void* data) {
  const auto status = on_event(e, data);
  std::list<Made*> hit;
  {
    const std::lock_guard lock(mutex);
    for (auto& m : all)
      if (m.fault_seen) hit.push_back(&m);
  }
  for (auto* m : hit)
    if (m->wanted.callback)
      m->wanted.callback(static_cast<hsa_status_t>(HSA_STATUS_ERROR_MEMORY_FAULT), &m->queue, m->wanted.callback_data);
  return status;
}

hsa_status_t make(hsa_agent_t agent, Descriptor& d) {
  constexpr std::uint64_t kPage = 4096, kWptr = 64;
  const std::uint8_t zero[32]{};
  if (d.version != 1 || d.flags != 0 || d.engine_type != 1 || d.priority > 2 || d.traffic_class != 0 ||
      std::memcmp(d.reserved_5, zero, 3) != 0 || std::memcmp(d.reserved_44, zero, 28) != 0 ||
      std::memcmp(d.reserved_76, zero, 20) != 0 || d.bytes < 1024 || (d.bytes & (d.bytes - 1)) != 0)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const bool any = d.engine == ~0u;
  if (!any && asked_for("old-driver")) return HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
  all.push_back({.agent = agent, .wanted = d});
  auto& m = all.back();
  m.ring = host_memory(agent, d.bytes);
  m.pointers = host_memory(agent, kPage);
  kfd::CreateQueue a{.ring = reinterpret_cast<std::uint64_t>(m.ring),
                     .wptr = reinterpret_cast<std::uint64_t>(m.pointers) + kWptr,
                     .rptr = reinterpret_cast<std::uint64_t>(m.pointers),
                     .ring_bytes = d.bytes,
                     .gpu_id = gpu_id(agent),
                     .type = any ? kfd::kQueueSdma : kfd::kQueueSdmaByEngine,
                     .percentage = 100,
                     .priority = 7,
                     .sdma_engine_id = any ? 0 : d.engine};
  if (const int error = ask(kfd::Nr::create_queue, a)) {
    give_back(m);
    all.pop_back();
    return error == ENOMEM ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
  }
  auto& frame = doorbells[a.gpu_id];
  if (!frame)
    frame = static_cast<char*>(::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, driver(),
                                      static_cast<off_t>(a.doorbell_offset & ~(kfd::kDoorbellBytes - 1))));
  m.id = a.queue_id;
  m.bell.kind = asked_for("forwarded") ? AMD_SIGNAL_KIND_USER : AMD_SIGNAL_KIND_DOORBELL;
  m.bell.hardware_doorbell_ptr =
      reinterpret_cast<volatile std::uint64_t*>(frame + a.doorbell_offset % kfd::kDoorbellBytes);
  m.queue.base_address = m.ring;
  m.queue.doorbell_signal.handle = reinterpret_cast<std::uint64_t>(&m.bell);
  m.queue.size = d.bytes;
  m.queue.id = m.id;
  d.queue = &m.queue;
  return HSA_STATUS_SUCCESS;
}

std::list<Made>::iterator find(const hsa_queue_t* q) {
  auto at = all.begin();
  while (at != all.end() && &at->queue != q) ++at;
  return at;
}

}  // namespace

extern "C" {

hsa_status_t hsa_amd_queue_create(hsa_agent_t agent, Descriptor* descriptors, std::uint32_t count) {
  const std::lock_guard lock(mutex);
  // ROCr may have been shut down since the last queue, and has then forgotten its handlers.
  if (all.empty()) (void)hsa_amd_register_system_event_handler(tell, nullptr);
  for (std::uint32_t i = 0; i < count; ++i) {
    descriptors[i].queue = nullptr;
    if (const auto s = make(agent, descriptors[i]); s != HSA_STATUS_SUCCESS) return s;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_queue_get_info(hsa_queue_t* q, std::uint32_t attribute, void* out) {
  const std::lock_guard lock(mutex);
  const auto m = find(q);
  if (m == all.end() || asked_for("destroyed")) return HSA_STATUS_ERROR_INVALID_QUEUE;
  const auto pointers = reinterpret_cast<std::uint64_t>(m->pointers);
  switch (attribute) {
    case 10: *static_cast<bool*>(out) = m->fault_seen; break;
    case 11: *static_cast<std::uint64_t*>(out) = m->fault_at; break;
    case 12: *static_cast<std::uint32_t*>(out) = m->fault_reason; break;
    case 13: *static_cast<std::uint32_t*>(out) = m->wanted.engine_type; break;
    case 14: *static_cast<std::uint32_t*>(out) = m->wanted.engine; break;
    case 15: *static_cast<std::uint64_t*>(out) = pointers; break;
    case 16: *static_cast<std::uint64_t*>(out) = pointers + 64; break;
    default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

#ifndef SDMA_STAND_IN
hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* out) {
  static const auto real = reinterpret_cast<decltype(&hsa_system_get_info)>(::dlsym(RTLD_NEXT, "hsa_system_get_info"));
  const auto status = real(attribute, out);
  if (attribute == HSA_SYSTEM_INFO_VERSION_MAJOR && asked_for("version-2")) *static_cast<std::uint16_t*>(out) = 2;
  return status;
}
#endif

hsa_status_t hsa_queue_inactivate(hsa_queue_t* q) {
  const std::lock_guard lock(mutex);
  const auto m = find(q);
  if (m == all.end()) return HSA_STATUS_ERROR_INVALID_QUEUE;
  kfd::UpdateQueue a{
      .ring = reinterpret_cast<std::uint64_t>(m->ring), .queue_id = m->id, .ring_bytes = m->wanted.bytes};
  return ::ioctl(driver(), kfd::request<kfd::UpdateQueue>(kfd::Nr::update_queue, kfd::kIn), &a) == 0
             ? HSA_STATUS_SUCCESS
             : HSA_STATUS_ERROR_INVALID_QUEUE;
}

hsa_status_t hsa_queue_destroy(hsa_queue_t* q) {
  const std::lock_guard lock(mutex);
  const auto m = find(q);
  if (m == all.end()) return HSA_STATUS_ERROR_INVALID_QUEUE;
  kfd::DestroyQueue a{.queue_id = m->id};
  (void)ask(kfd::Nr::destroy_queue, a);
  give_back(*m);
  all.erase(m);
  return HSA_STATUS_SUCCESS;
}
}
