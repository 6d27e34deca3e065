// SPDX-License-Identifier: MIT
#pragma once
// Queues as the ioctls see them: their engines, slots and memory, and the requests that the kernel refuses.
//
//   engine   SDMA: the host-facing engines; SDMA_XGMI: the others; BY_ENG_ID: the named engine; 8 slots each, for all
//            processes
//   memory   a ring that is exactly one mapping, and a page for each pointer: pinned until the queue is destroyed
//   change   creating, destroying and updating a queue unmaps all queues of the GPU for a moment: a doorbell that is
//            rung during that time is lost, but wptr in memory counts
//
//   debug    what a debugger sees of the queues: debug.hpp
//
// Destroying a queue does not drain it: packets between rptr and wptr never run.
// Threads: call everything under the node's lock. Results are 0 or an errno.
// A call that throws std::bad_alloc has changed nothing.
#include "../queues/server.hpp"
#include "memory_objects.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace sdma::emulator {

class Queues {
 public:
  Queues(Memory&, Events&, Exceptions&, const SysfsNode&, Drive = Drive::thread);

  int create(kfd::CreateQueue&);
  int destroy(std::uint32_t id);
  int update(const kfd::UpdateQueue&);
  /// The state of the waves of an inactive compute queue, which never has any. EFAULT: no such queue.
  int wave_state(kfd::QueueWaveState&);
  /// Assigns the GPU's global wave sync to a queue, or removes it.
  int set_gws(std::uint32_t id, bool given);
  /// A runtime asks for the exceptions of the queues that it creates from now on, or no longer does. EBUSY: it already
  /// does; EEXIST: the process has queues already.
  int set_runtime(bool enabled);
  bool runtime() const noexcept { return runtime_; }
  bool exists(std::uint32_t id) const { return queues_.count(id) != 0; }
  /// All queues, in the order of their numbers.
  std::vector<kfd::QueueEntry> entries() const;
  /// The exceptions of a queue that exists.
  std::atomic<std::uint64_t>& exceptions(std::uint32_t id) noexcept;
  /// Unmaps all queues of all GPUs, and maps them again.
  void remap() noexcept;
  /// Suspends queues, or lets them run again. Returns how many of them are in that state now; the numbers of
  /// the others get kDebugQueueInvalid. A queue that is suspended before its debugger has cleared "queue new"
  /// is one of the others.
  int suspend(std::span<std::uint32_t> ids, bool suspended) noexcept;
  /// Lets all queues run again.
  void resume() noexcept;
  Server& server(std::uint32_t g) noexcept { return *servers_[g]; }

 private:
  struct Entry {
    std::uint32_t gpu{}, engine{}, slot{}, doorbell{};
    std::uint32_t type{};
    bool placed{};  ///< has a slot of an engine that all processes share
    bool gws{};
    bool compute() const noexcept { return type == kfd::kQueueCompute || type == kfd::kQueueComputeAql; }
    PipelineConfig config{};
    std::uint64_t* wptr{};
    std::uint64_t ring{}, ring_bytes{}, rptr_va{}, wptr_va{}, save_area{};
    std::uint32_t save_area_bytes{}, control_stack_bytes{};
    std::uint64_t rptr_unmapped{}, wptr_unmapped{};  ///< when the queue was unmapped last
    std::vector<std::uint32_t*> pinned{};            ///< the counters of the objects and pieces that it uses
  };

  static constexpr std::uint32_t kAll = ~0u;
  class Unpins;
  class Pending;
  void leave(Entry&) noexcept;

  void nudge_all_but(std::uint32_t g) noexcept;
  /// Shows other processes the queues. `unmapped`: the GPU whose queues were unmapped for this change, or kAll.
  void show(std::uint32_t unmapped) noexcept;
  int place(const kfd::CreateQueue&, Entry&);
  int stand(const kfd::CreateQueue&, std::uint64_t ring_bytes, Entry&);
  int ring_of(Entry&, std::uint64_t va, std::uint64_t bytes, std::uint64_t more = 0);
  int pin(Entry&, std::uint64_t va, std::uint64_t bytes, bool* doubled = nullptr);
  void unpin(Entry&);
  std::unique_ptr<HwQueue> make(const kfd::CreateQueue&, Entry&, std::uint32_t id);
  std::uint64_t* doorbell(const Entry& e) const noexcept;

  Memory& memory_;
  Exceptions& exceptions_;
  const SysfsNode& node_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::map<std::uint32_t, Entry> queues_;
  bool runtime_ = false;
};

}  // namespace sdma::emulator
