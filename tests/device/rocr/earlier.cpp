// SPDX-License-Identifier: MIT
// Queues in the form of mid-2026, for the stand-in: hsa_amd_sdma_queue_create on hsa_amd_queue_create, which it hides.
// Every ring has 64 KiB. The attribute 0 is the resource, as the order in which the attributes are listed suggests.
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <cstring>

#define hsa_amd_queue_create hidden_queue_create
#include "queue_create.cpp"

namespace {

struct Resource {
  void* base;
  std::uint64_t bytes;
  std::uint64_t *rptr, *wptr, *doorbell;
};
constexpr std::uint32_t kRingBytes = 64 * 1024;

}  // namespace

extern "C" {

hsa_status_t hsa_amd_sdma_queue_create(hsa_agent_t agent, std::uint32_t flags, std::uint32_t engines,
                                       std::uint32_t priority, void** queue) {
  if (flags > 1 || (flags == 1 && (engines == 0 || (engines & (engines - 1)) != 0)))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Descriptor d{};
  d.version = 1;
  d.engine_type = 1;
  d.bytes = kRingBytes;
  d.priority = priority;
  d.engine = flags == 1 ? static_cast<std::uint32_t>(__builtin_ctz(engines)) : ~0u;
  const auto status = hidden_queue_create(agent, &d, 1);
  *queue = d.queue;
  return status;
}

hsa_status_t hsa_amd_sdma_queue_destroy(void* queue) { return hsa_queue_destroy(static_cast<hsa_queue_t*>(queue)); }

hsa_status_t hsa_amd_sdma_queue_get_info(void* queue, std::uint32_t attribute, void* out) {
  const std::lock_guard lock(mutex);
  const auto m = find(static_cast<hsa_queue_t*>(queue));
  if (m == all.end() || attribute != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto* const words = reinterpret_cast<std::uint64_t*>(m->pointers);
  const Resource r{m->ring, kRingBytes, words, words + 8, const_cast<std::uint64_t*>(m->bell.hardware_doorbell_ptr)};
  std::memcpy(out, &r, sizeof r);
  return HSA_STATUS_SUCCESS;
}
}
