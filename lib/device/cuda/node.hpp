// SPDX-License-Identifier: MIT
#pragma once
// What the queues and handles of one CUDA device share: physical GPUs, memory, events, faults, and the device's thread.
//
//   publishers --> CudaQueue::ring --> streams    the thread: every queue's step, in turn, while one of them needs it;
//   thread     --> CudaQueue::step -->            otherwise all doorbells every scan_interval
//
// Locks, in the order in which they may be taken: `creation_`, the worker's, a queue's, the memory pool's, a GPU's
// `control`. Whether freed memory is still in use is asked without the pool's lock.
//
// Internal. Errors: Diagnostics, as Device gives them.
#include "../../engine/park.hpp"
#include "../../engine/worker.hpp"
#include "../driverless_node.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "sdma/device/cuda.hpp"

#include <list>

namespace sdma::inline v0::detail::cuda {

/// What `open` has found: everything that a node is made of.
struct Probe {
  std::vector<Diagnostic> missing{};
  const Driver* driver{};
  int gpus{};  ///< physical
};
Probe probe(const CudaOptions&);

class Node final : public DriverlessNode<Node>, private Worker::Served {
 public:
  static Result<Node*, Diagnostic> make(const CudaOptions&, const Probe&);
  void stop() noexcept;

  Result<Memory, Diagnostic> adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus);
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&);
  Result<Queue, Diagnostic> create_queue(const QueueRequest&);
  std::optional<Fault> fault(const Queue&) const noexcept;
  Errc flush(GpuId) noexcept;
  Errc peek(GpuVa, std::span<std::byte>) noexcept;
  Result<Clock> clock(GpuId) noexcept;

  const Topology& topology() const noexcept { return topology_; }
  const std::vector<CudaGpu>& gpus() const noexcept { return gpus_; }
  const Driver& driver() const noexcept { return driver_; }
  std::uint32_t physical_gpus() const noexcept { return static_cast<std::uint32_t>(physical_.size()); }
  std::uint32_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }

  // Called by queues.
  void wake() noexcept override { parking_.wake(); }
  void gpu_failed(PhysicalGpu&) noexcept;
  Errc push_shadows(GpuId g) noexcept { return memory_pool_.push(g); }

 private:
  friend SharedNode;
  friend DriverlessNode;
  Node(const CudaOptions&, const Driver&, Topology, std::vector<CudaGpu>, std::vector<PhysicalGpu*>);
  ~Node();

  /// A queue, and what it is made of.
  struct Entry {
    std::unique_ptr<CudaQueue> queue{};
    std::vector<std::uint64_t> blocks{};
    std::byte* pages{};  ///< ring, rptr, wptr and doorbell: ordinary memory, which only this process reads
    std::size_t page_bytes{};
    Stream stream{};
    bool retired = false, parked = false;
    std::uint64_t blocks_before{};  ///< if parked: it may touch blocks with lower ids
  };
  /// So many commands of that queue may touch something.
  struct Use {
    std::uint64_t queue{}, command{};
  };

  PhysicalGpu& physical(GpuId g) const noexcept { return *physical_[g.value % physical_.size()]; }
  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest&);
  void free_block(std::uint64_t id) noexcept;
  void free_signal(std::uint64_t id) noexcept;
  /// The Signal::wake hook: a host has stored a word.
  static void on_host_store(void* node, GpuVa) noexcept;
  void destroy_queue(std::uint64_t id) noexcept;
  std::optional<Diagnostic> place(const QueueRequest&, QueueParts&);
  std::optional<Diagnostic> furnish(const QueueRequest&, QueueParts&, CommandParts&, Entry&);
  void map_queues(GpuId) noexcept;
  void retire(Entry&) noexcept;
  void dispose(Entry&) noexcept;
  std::vector<Use> uses(std::uint64_t block);
  bool in_use(std::vector<Use>&) noexcept;

  Progress round() noexcept override;
  bool spin(bool fresh) noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;

  const CudaOptions options_;
  const Driver& driver_;
  const Topology topology_;
  const std::vector<CudaGpu> gpus_;
  const std::vector<PhysicalGpu*> physical_;
  AddressSpace space_;
  MemoryPool memory_pool_;

  std::mutex creation_;           ///< queues are created one at a time
  std::uint64_t next_queue_ = 1;  // guarded by creation_
  mutable Worker worker_;         // its lock guards `entries_`
  std::list<Entry> entries_;      ///< those of destroyed queues, too, if their streams are parked
  std::atomic<std::uint32_t> parked_{0}, urgent_{0};
  std::vector<std::atomic<bool>> failed_;  ///< for each physical GPU: its error has been reported

  Parking parking_;
  std::uint32_t ticket_ = 0;              // the rest: used only by the thread
  Deadline::Clock::time_point looked_{};  ///< for errors
};

}  // namespace sdma::inline v0::detail::cuda
