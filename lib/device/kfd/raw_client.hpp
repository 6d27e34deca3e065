// SPDX-License-Identifier: MIT
#pragma once
// A KFD client that needs no library: descriptors, ioctls, memory and queues as the kernel's interface has them. For
// tests and benchmarks of the software node.
//
//   raw::Client c;                                                      // the process's GPUs, opened and acquired
//   auto words = c.allocate(4096);
//   raw::Queue queue(c, 0, kfd::kQueueSdmaByEngine);                    // queue.error: 0 or the errno
//   Ring<> ring(queue.memory());
//   ring.submit(Fence{.addr = words.gpu(), .value = 1});
//
// One thread. Errors: the errno of a call; memory that was refused has the address 0.
#include "../../kfd/abi.hpp"
#include "../../kfd/drm_abi.hpp"
#include "../sysfs.hpp"
#include "sdma/queue/ring.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <string>

namespace sdma { inline namespace v0_3 { namespace raw {

namespace kfd = sdma::kfd;
using kfd::Nr;

/// 0 or the errno. `bytes`: the size that the caller knows of the struct.
template <class A> int call(int fd, Nr nr, A& args, std::size_t bytes = sizeof(A)) {
  return ::ioctl(fd, kfd::request(nr, kfd::kBoth, bytes), &args) == 0 ? 0 : errno;
}

/// Asks a render node a question. 0 or the errno.
inline int ask(int fd, drm::Info i) { return ::ioctl(fd, drm::kInfoRequest, &i) == 0 ? 0 : errno; }
template <class Out> int ask(int fd, std::uint32_t query, Out& out, std::uint32_t type = 0, std::uint32_t index = 0) {
  return ask(fd, {.pointer = reinterpret_cast<std::uint64_t>(&out),
                  .bytes = sizeof out,
                  .query = query,
                  .type = type,
                  .index = index});
}

/// A call of a DRM node. 0 or the errno.
template <class A> int drm_call(int fd, drm::Nr nr, A& args) {
  return ::ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', static_cast<unsigned>(nr), sizeof args), &args) == 0 ? 0 : errno;
}

struct Memory {
  std::uint64_t va{}, bytes{}, handle{}, offset{};
  std::byte* host() const { return reinterpret_cast<std::byte*>(va); }
  template <class T> T* as(std::uint64_t at = 0) const { return reinterpret_cast<T*>(va + at); }
  GpuVa gpu(std::uint64_t at = 0) const { return GpuVa{va + at}; }
};

/// A process's view of the node, opened and ready.
struct Client {
  SysfsNode node = *from_sysfs(*read_sysfs());
  int kfd = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
  std::vector<int> render{};
  std::vector<std::byte*> doorbells{};

  Client() {
    for (const auto& g : node.gpus) {
      const auto path = "/dev/dri/renderD" + std::to_string(g.render_minor);
      render.push_back(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      kfd::AcquireVm a{.drm_fd = static_cast<std::uint32_t>(render.back()), .gpu_id = g.gpu_id};
      call(kfd, Nr::acquire_vm, a);
      doorbells.push_back(nullptr);
    }
  }
  ~Client() {
    for (int fd : render) ::close(fd);
    ::close(kfd);
  }

  std::uint32_t gpu_id(std::uint32_t g) const { return node.gpus[g].gpu_id; }

  Memory allocate(std::uint64_t bytes, std::uint32_t g = 0, std::uint32_t type = kfd::kGtt,
                  std::uint64_t gpus = ~0ull) {
    void* at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    Memory m{.va = reinterpret_cast<std::uint64_t>(at), .bytes = bytes};
    kfd::AllocMemory a{
        .va = m.va, .bytes = bytes, .handle = 0, .mmap_offset = 0, .gpu_id = gpu_id(g), .flags = type | kfd::kWritable};
    if (call(kfd, Nr::alloc_memory, a) != 0) return {};
    m.handle = a.handle;
    m.offset = a.mmap_offset;
    // A doubled ring has half as many pages as it has addresses.
    const auto pages = (type & kfd::kAqlQueue) != 0 ? bytes / 2 : bytes;
    if (::mmap(at, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render[g], static_cast<off_t>(m.offset)) ==
        MAP_FAILED)
      return {};
    if (map(m, gpus) != 0) return {};
    return m;
  }
  std::vector<std::uint32_t> ids(std::uint64_t gpus) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t g = 0; g < node.gpus.size(); ++g)
      if ((gpus >> g & 1) != 0) out.push_back(gpu_id(g));
    return out;
  }
  int map(const Memory& m, std::uint64_t gpus) { return change(Nr::map_memory, m, gpus); }
  int unmap(const Memory& m, std::uint64_t gpus) { return change(Nr::unmap_memory, m, gpus); }
  int change(Nr nr, const Memory& m, std::uint64_t gpus) {
    const auto list = ids(gpus);
    kfd::MapMemory a{.handle = m.handle,
                     .gpu_ids = reinterpret_cast<std::uint64_t>(list.data()),
                     .count = static_cast<std::uint32_t>(list.size()),
                     .done = 0};
    return call(kfd, nr, a);
  }
  int free(const Memory& m) {
    for (std::uint32_t g = 0; g < node.gpus.size(); ++g)
      unmap(m, 1ull << g);  // where it is not mapped: an error, no harm
    kfd::FreeMemory a{m.handle};
    const int error = call(kfd, Nr::free_memory, a);
    if (error == 0) ::munmap(m.host(), m.bytes);
    return error;
  }
};

/// The process's page of mailboxes: taken by the driver with the first event, for good.
inline const Memory& event_page(Client& c) {
  static const Memory page = [&] {
    const auto m = c.allocate(kfd::kSignalEvents * 8);
    kfd::CreateEvent first{};
    first.page_offset = m.handle;
    call(c.kfd, Nr::create_event, first);
    return m;
  }();
  return page;
}

/// A queue of a client, with a Ring over it.
struct Queue {
  Client& client;
  std::uint32_t gpu{}, id{};
  int error{};
  Memory ring{}, pointers{};
  std::uint64_t* doorbell{};

  Queue(Client& c, std::uint32_t g, std::uint32_t type, std::uint32_t engine = 0, std::uint64_t bytes = 4096,
        std::uint64_t save_area = 0)
      : client(c), gpu(g) {
    ring = c.allocate(bytes, g);
    pointers = c.allocate(4096, g);
    kfd::CreateQueue a{};
    a.ring = ring.va;
    a.ring_bytes = static_cast<std::uint32_t>(bytes);
    a.rptr = pointers.va;
    a.wptr = pointers.va + 64;
    a.gpu_id = c.gpu_id(g);
    a.type = type;
    a.percentage = 100;
    a.priority = 7;
    a.sdma_engine_id = engine;
    a.save_area = save_area;
    error = call(c.kfd, Nr::create_queue, a);
    if (error != 0) return;
    id = a.queue_id;
    auto& page = c.doorbells[g];
    if (!page)
      page = static_cast<std::byte*>(::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, c.kfd,
                                            static_cast<off_t>(a.doorbell_offset & ~(kfd::kDoorbellBytes - 1))));
    doorbell = reinterpret_cast<std::uint64_t*>(page + (a.doorbell_offset & (kfd::kDoorbellBytes - 1)));
  }
  ~Queue() {
    destroy();
    client.free(ring);
    client.free(pointers);
  }
  int destroy() {
    if (id == 0 && error != 0) return error;
    kfd::DestroyQueue a{.queue_id = id, .pad = 0};
    error = ENODEV;
    return call(client.kfd, Nr::destroy_queue, a);
  }
  RingMemory memory() const {
    return {.dwords = {ring.as<std::uint32_t>(), ring.bytes / 4},
            .rptr = pointers.as<std::uint64_t>(),
            .wptr = pointers.as<std::uint64_t>(64),
            .doorbell = doorbell,
            .caching = Caching::write_back};
  }
};

}}}  // namespace sdma::v0_3::raw
