// SPDX-License-Identifier: MIT
#pragma once
// Memory objects: the results of ALLOC_MEMORY_OF_GPU, and the address space of each GPU.
//
//   object   bytes of the arena (VRAM, GTT, doorbells, registers) or of the program (userptr)
//   handle   gpu_id << 32 | number, as the kernel composes it
//   mapped   into the address spaces of chosen GPUs, at the VA that the object was created for
//
//   GPU VA     va                va + bytes          an AQL ring that is allocated doubled is mapped twice:
//              | object           |                  two halves of the VA range, one piece of memory
//
// Each GPU has its own address space: as in hardware, one VA may refer to different objects on different GPUs. The
// memory that a queue uses is pinned: it can be neither unmapped nor freed while the queue exists.
//
// Threads: call everything under the node's lock; only engines look up addresses without it. Results are 0 or an errno.
// A call that throws std::bad_alloc or returns ENOMEM has changed nothing, except that map and unmap say in `done` how
// many GPUs they have served.
#include "../../kfd/abi.hpp"
#include "../queues/doorbells.hpp"
#include "arena.hpp"
#include "shared_limits.hpp"
#include "shown.hpp"
#include "system_memory.hpp"

#include "../../device/sysfs.hpp"
#include "../../engine/address_space.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace sdma::emulator {

/// A description of the contents of a buffer, by one program for
/// others that use it (GEM_METADATA). The node only keeps it.
struct Metadata {
  std::uint64_t flags{}, tiling{};
  std::vector<std::byte> bytes{};
};

struct Pages;
/// All pages of this process, by where they lie: the inode of an arena, and an offset.
using PagesByPlace = std::map<std::pair<ino_t, std::uint64_t>, std::weak_ptr<Pages>>;

/// The bytes of an object, held by one object or, after an export and an import, by several, and by GEM handles.
struct Pages {
  Pages(Arena& a, PagesByPlace& all) : arena(a), by_place(all) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();
  /// A descriptor of the arena in which they lie; -1 if the program has closed it.
  int file() const noexcept { return source ? source->fd : arena.valid() ? arena.fd() : -1; }

  Arena& arena;
  PagesByPlace& by_place;
  ObjectInfo info{};
  std::shared_ptr<const Source> source{};  ///< another process's arena; null: this one's
  std::uint64_t offset{};                  ///< at which a program maps them; 0: none yet
  std::byte* view{};
  Charge charge{}, shown{};  ///< none if another process allocated them
  Metadata metadata{};
  std::uint64_t domains{}, create_flags{};  ///< of GEM_CREATE; 0 if KFD has allocated them
};

/// A new DMABUF descriptor of the pages, with O_CLOEXEC if that is in `flags`; or a negative errno.
int export_pages(const Pages&, bool writable, int flags) noexcept;

struct Object {
  std::uint64_t handle{}, va{}, bytes{}, mmap_offset{};
  std::uint32_t gpu{}, flags{};
  std::byte* host{};               ///< null: pages that no engine may access
  std::shared_ptr<Pages> pages{};  ///< null: the program's own memory, or a fixed page
  Charge charge{};                 ///< for the program's own memory
  std::uint64_t mapped{};          ///< bit g: GPU g sees it
  std::uint32_t pins{};
  bool doubled() const noexcept { return (flags & kfd::kAqlQueue) != 0; }
};

class GpuVm;

class GpuMemory {
 public:
  AddressSpace space{};
  bool acquired = false;  ///< the program has acquired a DRM node for this GPU
  GpuVm* vm{};            ///< the mappings of that node's file
};

/// How long an unmapping waits for engines to leave, which they do after a few packets: 60 s. Under the node's lock, as
/// the driver waits under that of the process.
inline Deadline engine_patience() noexcept { return Deadline::in(std::chrono::seconds(60)); }

class Memory {
 public:
  Memory(Arena&, SharedLimits&, const SysfsNode&);
  ~Memory();

  /// Index of a GPU; the number of GPUs if there is no such GPU.
  std::uint32_t index(std::uint32_t gpu_id) const noexcept;
  std::uint32_t gpus() const noexcept { return static_cast<std::uint32_t>(gpus_.size()); }
  GpuMemory& gpu(std::uint32_t g) noexcept { return *gpus_[g]; }

  int allocate(kfd::AllocMemory&);
  int free(std::uint64_t handle);
  int map(kfd::MapMemory&, std::span<const std::uint32_t> gpu_ids);
  int unmap(kfd::MapMemory&, std::span<const std::uint32_t> gpu_ids);
  std::uint64_t available(std::uint32_t g) noexcept;
  SharedLimits& shared() noexcept { return shared_; }
  std::uint64_t vram_bytes(std::uint32_t g) const noexcept { return node_.topology.gpus[g].memory_bytes; }
  const SystemLimits& limits() const noexcept { return limits_; }

  int export_dmabuf(kfd::ExportDmabuf&);
  int import_dmabuf(kfd::ImportDmabuf&);
  int dmabuf_info(kfd::GetDmabufInfo&);
  int export_ipc(kfd::ExportIpc&);
  int import_ipc(kfd::ImportIpc&);

  /// Creates `bytes` bytes of the arena. Returns 0 or an errno.
  int create_pages(std::uint64_t bytes, std::uint32_t gpu, std::uint32_t flags, Charge, std::shared_ptr<Pages>*);
  /// The pages of an object of this process or of another: those that this process has already, or a view of its own.
  /// `link`: an entry of /proc/PID/fd that refers to their arena.
  int share_pages(const ObjectInfo&, const char* link, std::shared_ptr<Pages>*);

  Object* find(std::uint64_t handle) noexcept;
  /// The object that GPU g sees as exactly [va, va + bytes); with bytes = 0, any object that begins at va.
  Object* exactly(std::uint32_t g, std::uint64_t va, std::uint64_t bytes) noexcept;
  /// The host address of the bytes that GPU g sees at va; null if they are not all in one object.
  std::byte* host(std::uint32_t g, std::uint64_t va, std::uint64_t bytes) const noexcept;
  std::byte* doorbells(std::uint32_t g) const noexcept { return doorbells_[g]; }
  /// The node's own slots of events; null if there is no memory for them.
  std::uint64_t* event_page() noexcept {
    if (!event_page_) event_page_ = reinterpret_cast<std::uint64_t*>(arena_.view(kEventPage, kEventPageBytes));
    return event_page_;
  }
  /// Counts the steps of GPU g's sDMA queues that made progress; null if there is no memory for it.
  std::uint64_t* activity(std::uint32_t g) const noexcept { return shown_ ? &shown_->sdma_activity[g] : nullptr; }
  /// Shows other processes the first VM fault of GPU g. Any thread, engine threads included.
  void show_fault(std::uint32_t g, GpuVa page) noexcept;
  /// The queues that other processes see; null if there is no memory for them.
  ShownQueues* shown_queues() const noexcept { return shown_queues_; }
  DoorbellPage doorbell_page(std::uint32_t g) const noexcept {
    return {.fd = arena_.fd(), .offset = doorbell_offset(g), .view = doorbells_[g]};
  }

 private:
  int take(const ObjectInfo&, const char* link, std::uint32_t gpu_id, std::uint64_t va, Object*);
  int charge(const Object&, Charge*) noexcept;
  int map_one(Object&, std::uint32_t g);
  int unmap_one(Object&, std::uint32_t g);
  Object& add(Object);

  Arena& arena_;
  SharedLimits& shared_;
  const SysfsNode& node_;
  std::vector<std::unique_ptr<GpuMemory>> gpus_;
  std::vector<std::byte*> doorbells_, registers_;
  Shown* shown_{};
  ShownQueues* shown_queues_{};
  std::uint64_t* event_page_{};
  PagesByPlace pages_{};
  std::map<std::uint64_t, Object> objects_;
  SystemLimits limits_{};
  std::uint32_t next_ = 1;
};

}  // namespace sdma::emulator
