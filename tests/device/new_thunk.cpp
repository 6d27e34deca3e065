// SPDX-License-Identifier: MIT
// libhsakmt as newer versions are: with hsaKmtCreateQueueExt, which Debian 12's has not. All else is the library's own,
// behind this one. SDMA_TEST_KFD_MINOR: the minor version that the driver pretends to have.
#include "../../lib/kfd/abi.hpp"

#include <fcntl.h>
#include <hsakmt.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

namespace kfd = sdma::kfd;

struct Made {
  kfd::CreateQueue args{};
  void* page{};
};

std::mutex mutex;
std::map<HSA_QUEUEID, Made> queues;
std::map<std::uint32_t, char*> doorbells;

int driver() {
  static const int fd = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
  return fd;
}

template <class A> bool ask(kfd::Nr nr, A& args) { return ::ioctl(driver(), kfd::request<A>(nr), &args) == 0; }

std::uint32_t gpu_id(std::uint32_t node) {
  const auto path = "/sys/devices/virtual/kfd/kfd/topology/nodes/" + std::to_string(node) + "/gpu_id";
  std::uint32_t id = 0;
  if (auto* f = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(f, "%u", &id) != 1) id = 0;
    std::fclose(f);
  }
  return id;
}

}  // namespace

extern "C" {

HSAKMT_STATUS hsaKmtGetVersion(HsaVersionInfo* v) {
  const char* minor = std::getenv("SDMA_TEST_KFD_MINOR");
  kfd::GetVersion a{};
  if (!ask(kfd::Nr::get_version, a)) return HSAKMT_STATUS_ERROR;
  v->KernelInterfaceMajorVersion = a.major;
  v->KernelInterfaceMinorVersion = minor ? static_cast<std::uint32_t>(std::atoi(minor)) : a.minor;
  return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtCreateQueueExt(HSAuint32 node, int type, HSAuint32 percentage, HSA_QUEUE_PRIORITY, HSAuint32 engine,
                                   void* ring, HSAuint64 bytes, HsaEvent*, HsaQueueResource* out) {
  constexpr std::size_t kPage = 4096, kFrame = 8192;
  HsaMemFlags f{};
  f.ui32.NonPaged = f.ui32.HostAccess = f.ui32.Uncached = f.ui32.ExecuteAccess = 1;
  Made m;
  if (hsaKmtAllocMemory(0, kPage, f, &m.page) != HSAKMT_STATUS_SUCCESS) return HSAKMT_STATUS_NO_MEMORY;
  HSAuint64 va = 0;
  (void)hsaKmtMapMemoryToGPU(m.page, kPage, &va);
  const auto at = reinterpret_cast<std::uint64_t>(m.page);
  m.args = {.ring = reinterpret_cast<std::uint64_t>(ring),
            .wptr = at + 8,
            .rptr = at + 16,
            .doorbell_offset = 0,
            .ring_bytes = static_cast<std::uint32_t>(bytes),
            .gpu_id = gpu_id(node),
            .type = type == 6   ? kfd::kQueueSdmaByEngine
                    : type == 5 ? kfd::kQueueSdmaXgmi
                                : kfd::kQueueSdma,
            .percentage = percentage,
            .priority = 7,
            .queue_id = 0,
            .eop = 0,
            .eop_bytes = 0,
            .save_area = 0,
            .save_area_bytes = 0,
            .control_stack_bytes = 0,
            .sdma_engine_id = engine,
            .metadata_ring_bytes = 0};
  const std::lock_guard lock(mutex);
  if (!ask(kfd::Nr::create_queue, m.args)) {
    (void)hsaKmtUnmapMemoryToGPU(m.page);
    (void)hsaKmtFreeMemory(m.page, kPage);
    return HSAKMT_STATUS_NO_MEMORY;
  }
  auto& frame = doorbells[node];
  if (!frame)
    frame = static_cast<char*>(::mmap(nullptr, kFrame, PROT_READ | PROT_WRITE, MAP_SHARED, driver(),
                                      static_cast<off_t>(m.args.doorbell_offset & ~(kFrame - 1))));
  std::memset(out, 0, sizeof *out);
  out->QueueId = at;
  out->QueueWptrValue = m.args.wptr;
  out->QueueRptrValue = m.args.rptr;
  out->QueueDoorBell = reinterpret_cast<std::uint64_t>(frame + m.args.doorbell_offset % kFrame);
  queues.emplace(at, m);
  return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtDestroyQueue(HSA_QUEUEID id) {
  const std::lock_guard lock(mutex);
  const auto at = queues.find(id);
  if (at == queues.end()) return HSAKMT_STATUS_INVALID_HANDLE;
  kfd::DestroyQueue a{.queue_id = at->second.args.queue_id, .pad = 0};
  if (!ask(kfd::Nr::destroy_queue, a)) return HSAKMT_STATUS_ERROR;
  (void)hsaKmtUnmapMemoryToGPU(at->second.page);
  (void)hsaKmtFreeMemory(at->second.page, 4096);
  queues.erase(at);
  return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtUpdateQueue(HSA_QUEUEID id, HSAuint32 percentage, HSA_QUEUE_PRIORITY, void* ring, HSAuint64 bytes,
                                HsaEvent*) {
  const std::lock_guard lock(mutex);
  const auto at = queues.find(id);
  if (at == queues.end()) return HSAKMT_STATUS_INVALID_HANDLE;
  kfd::UpdateQueue a{.ring = reinterpret_cast<std::uint64_t>(ring),
                     .queue_id = at->second.args.queue_id,
                     .ring_bytes = static_cast<std::uint32_t>(bytes),
                     .percentage = percentage,
                     .priority = 7};
  return ask(kfd::Nr::update_queue, a) ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_ERROR;
}
}
