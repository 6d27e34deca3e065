// SPDX-License-Identifier: MIT
// libhsakmt, as the distribution ships it, on the node: properties, memory, events, and a queue whose interrupt wakes a
// wait. Run under `sdma emulate --gpus=2`.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"

#include <hsakmt.h>

#include "support/catch.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <cstring>
#include <vector>

using namespace sdma;

namespace {

struct Kfd {
  Kfd() {
    REQUIRE(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS);
    HsaSystemProperties p{};
    REQUIRE(hsaKmtAcquireSystemProperties(&p) == HSAKMT_STATUS_SUCCESS);
    nodes.resize(p.NumNodes);
    for (HSAuint32 n = 0; n < p.NumNodes; ++n) REQUIRE(hsaKmtGetNodeProperties(n, &nodes[n]) == HSAKMT_STATUS_SUCCESS);
  }
  ~Kfd() {
    hsaKmtReleaseSystemProperties();
    hsaKmtCloseKFD();
  }
  HSAuint32 gpu(std::size_t wanted) const {
    for (HSAuint32 n = 0; n < nodes.size(); ++n)
      if (nodes[n].NumFComputeCores != 0 && wanted-- == 0) return n;
    return 0;
  }
  std::vector<HsaNodeProperties> nodes{};
};

void* allocate(HSAuint32 node, std::size_t bytes, bool vram) {
  HsaMemFlags f{};
  f.ui32.NonPaged = vram;
  f.ui32.HostAccess = 1;
  f.ui32.PageSize = HSA_PAGE_SIZE_4KB;
  f.ui32.ExecuteAccess = !vram;
  void* p = nullptr;
  REQUIRE(hsaKmtAllocMemory(node, bytes, f, &p) == HSAKMT_STATUS_SUCCESS);
  HSAuint64 alternate = 0;
  REQUIRE(hsaKmtMapMemoryToGPU(p, bytes, &alternate) == HSAKMT_STATUS_SUCCESS);
  return p;
}

void release(void* p, std::size_t bytes) {
  hsaKmtUnmapMemoryToGPU(p);
  CHECK(hsaKmtFreeMemory(p, bytes) == HSAKMT_STATUS_SUCCESS);
}

GpuVa va(const void* p) { return GpuVa{reinterpret_cast<std::uint64_t>(p)}; }

}  // namespace

TEST_CASE("the node's properties are those of an MI300X") {
  Kfd kfd;
  const auto& g = kfd.nodes[kfd.gpu(1)];
  CHECK(g.NumFComputeCores == 1216);
  CHECK(g.NumSdmaEngines == 2);
  CHECK(g.NumSdmaXgmiEngines == 14);
  CHECK(g.NumSdmaQueuesPerEngine == 8);
  CHECK(g.DrmRenderMinor == 129);
  CHECK(g.DeviceId == 0x74a1);
  CHECK(g.EngineId.ui32.Major == 9);
  CHECK(g.EngineId.ui32.Minor == 4);
  CHECK(g.EngineId.ui32.Stepping == 2);
}

TEST_CASE("copy, fence, interrupt: the event wakes") {
  Kfd kfd;
  for (const auto type : {HSA_QUEUE_SDMA, HSA_QUEUE_SDMA_XGMI}) {
    const auto node = kfd.gpu(type == HSA_QUEUE_SDMA ? 0 : 1);
    constexpr std::size_t kRing = 4096, kBytes = 1 << 20;
    auto* ring_memory = allocate(0, kRing, false);
    auto* src = allocate(0, kBytes, false);
    auto* dst = allocate(node, kBytes, true);
    std::memset(src, 0x77, kBytes);
    HsaEventDescriptor d{};
    d.EventType = HSA_EVENTTYPE_SIGNAL;
    d.NodeId = node;
    HsaEvent* event = nullptr;
    REQUIRE(hsaKmtCreateEvent(&d, false, false, &event) == HSAKMT_STATUS_SUCCESS);
    HsaQueueResource q{};
    REQUIRE(hsaKmtCreateQueue(node, type, 100, HSA_QUEUE_PRIORITY_NORMAL, ring_memory, kRing, event, &q) ==
            HSAKMT_STATUS_SUCCESS);
    Ring<> ring(RingMemory{.dwords = {static_cast<std::uint32_t*>(ring_memory), kRing / 4},
                           .rptr = reinterpret_cast<std::uint64_t*>(q.Queue_read_ptr),
                           .wptr = reinterpret_cast<std::uint64_t*>(q.Queue_write_ptr),
                           .doorbell = reinterpret_cast<std::uint64_t*>(q.Queue_DoorBell),
                           .caching = Caching::write_back});
    const auto id = static_cast<std::uint32_t>(event->EventData.HWData3);
    REQUIRE(ring.submit(CopyLinear{.src = va(src), .dst = va(dst), .bytes = kBytes},
                        Fence{.addr = GpuVa{event->EventData.HWData2}, .value = id}, Trap{.context = id}) == Errc::ok);
    CHECK(hsaKmtWaitOnEvent(event, 20'000) == HSAKMT_STATUS_SUCCESS);
    CHECK(std::memcmp(src, dst, kBytes) == 0);
    CHECK(hsaKmtDestroyQueue(q.QueueId) == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS);
    release(dst, kBytes);
    release(src, kBytes);
    release(ring_memory, kRing);
  }
}

TEST_CASE("memory of the program at another GPU address") {
  Kfd kfd;
  std::vector<std::uint8_t> mine(100'000, 0x11);
  REQUIRE(hsaKmtRegisterMemory(mine.data(), mine.size()) == HSAKMT_STATUS_SUCCESS);
  HSAuint64 alternate = 0;
  REQUIRE(hsaKmtMapMemoryToGPU(mine.data(), mine.size(), &alternate) == HSAKMT_STATUS_SUCCESS);
  CHECK(alternate != 0);
  CHECK(hsaKmtUnmapMemoryToGPU(mine.data()) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtDeregisterMemory(mine.data()) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("memory shared with another process, through the library") {
  Kfd kfd;
  constexpr std::size_t kBytes = 1 << 20;
  auto* mine = allocate(kfd.gpu(1), kBytes, true);
  std::memset(mine, 0x21, kBytes);
  HsaSharedMemoryHandle handle{};
  REQUIRE(hsaKmtShareMemory(mine, kBytes, &handle) == HSAKMT_STATUS_SUCCESS);
  const auto child = fork();
  if (child == 0) {
    HsaSystemProperties p{};
    void* theirs = nullptr;
    HSAuint64 bytes = 0, alternate = 0;
    const bool there = hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS &&
                       hsaKmtAcquireSystemProperties(&p) == HSAKMT_STATUS_SUCCESS &&
                       hsaKmtRegisterSharedHandle(&handle, &theirs, &bytes) == HSAKMT_STATUS_SUCCESS &&
                       bytes == kBytes && hsaKmtMapMemoryToGPU(theirs, bytes, &alternate) == HSAKMT_STATUS_SUCCESS;
    if (!there || static_cast<char*>(theirs)[kBytes - 1] != 0x21) _exit(1);
    std::memset(theirs, 0x43, kBytes);
    _exit(hsaKmtUnmapMemoryToGPU(theirs) == HSAKMT_STATUS_SUCCESS &&
                  hsaKmtDeregisterMemory(theirs) == HSAKMT_STATUS_SUCCESS
              ? 0
              : 2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(static_cast<char*>(mine)[kBytes - 1] == 0x43);
  release(mine, kBytes);
}
