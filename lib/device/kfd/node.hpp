// SPDX-License-Identifier: MIT
#pragma once
// What the handles of one KFD device share: the driver's descriptor, memory, signals, events, queues and faults.
//
// The device's destructor disables its queues; their rings and pointers stay until the handles are destroyed.
//
// Locks, in the order in which they may be taken: `queues_mutex_`, `memory_`,
// `faults_mutex_`. None is held across a wait. Internal to the library.
#include "../shared_node.hpp"
#include "driver.hpp"
#include "drm.hpp"
#include "probe.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace sdma::inline v0::detail {

class KfdNode final : public SharedNode<KfdNode> {
 public:
  static Result<KfdNode*, Diagnostic> open(const KfdOptions&);
  /// Stops execution: disables all queues.
  void stop() noexcept;

  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&);
  Result<Event, Diagnostic> create_event();
  Result<Queue, Diagnostic> create_queue(const QueueRequest&);
  Errc wait_event(std::uint32_t id, Deadline) noexcept;
  Result<Fault> wait_fault(Deadline) noexcept;
  std::optional<Fault> fault(GpuId) noexcept;
  Errc flush_host_writes(GpuId) const noexcept;
  Errc peek(GpuVa, std::span<std::byte>) const noexcept;
  Result<Clock> clock(GpuId) const noexcept;

  const Topology& topology() const noexcept { return node_.topology; }
  const std::vector<KfdGpu>& gpus() const noexcept { return identities_; }
  thunk::Version version() const noexcept { return version_; }

 private:
  friend SharedNode;
  struct Block {
    void* base{};  ///< the address that libhsakmt returned
    std::uint64_t base_bytes{};
    std::uint64_t bytes{};
    std::byte* host{};  ///< null: not mapped for the host
    std::optional<GpuId> owner{};
  };
  struct GpuState {
    std::uint32_t thunk_node{}, gpu_id{};
    volatile std::uint32_t* hdp_flush{};  ///< null: the driver does not offer it
    std::byte* doorbells{};               ///< of queues that the ioctl creates
    std::optional<Fault> fault{};         ///< the first fault, after which the GPU's queues are lost for good
  };
  struct QueueState {
    GpuId gpu{};
    std::uint64_t ring{}, pointers{};  ///< ids of blocks; `pointers` is 0 if libhsakmt allocated them
    void* address{};
    std::uint64_t ring_bytes{};
    std::uint64_t handle{};  ///< the driver's id of the queue, or libhsakmt's
    RingMemory memory{};
  };

  KfdNode(const KfdOptions&, Probe&&);
  ~KfdNode();
  std::optional<Diagnostic> begin(const KfdOptions&);
  std::optional<Diagnostic> look_at_gpus(const KfdOptions&);
  std::optional<Diagnostic> watch_faults();

  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest&);
  void free_block(std::uint64_t id) noexcept;
  void free_event(std::uint64_t id) noexcept;

  std::optional<Diagnostic> by_library(const QueueRequest&, QueueState&);
  std::optional<Diagnostic> by_driver(const QueueRequest&, QueueState&);
  void give_back_memory(const QueueState&) noexcept;
  void destroy(const QueueState&) noexcept;
  void destroy_queue(std::uint64_t id) noexcept;

  /// Reads the driver's new faults and stores them. Errc::ok if there was one.
  Errc look_for_faults(Deadline) noexcept;
  void keep(const Fault&) noexcept;
  std::optional<GpuId> gpu_of(std::uint32_t gpu_id) const noexcept;

  const SysfsNode node_;
  const thunk::Thunk& thunk_;
  const std::uint32_t cpu_node_;
  int fd_ = -1;
  bool opened_ = false;
  thunk::Version version_{};
  std::vector<GpuState> gpus_;
  std::vector<KfdGpu> identities_;

  // Guarded by memory_.
  std::map<std::uint64_t, Block> blocks_;  ///< by VA, which is also the id
  std::unordered_map<std::uint32_t, thunk::Event*> events_;

  std::mutex queues_mutex_;
  std::unordered_map<std::uint64_t, QueueState> queues_;
  std::uint64_t next_queue_ = 1;
  bool stopped_ = false;

  std::mutex faults_mutex_;
  std::condition_variable fault_came_;
  std::deque<Fault> faults_;
  bool waiter_in_driver_ = false;  ///< a thread waits in the driver for a fault
  std::atomic<bool> faulted_{false};
  std::optional<Fault> first_fault_;
  thunk::Event* memory_event_ = nullptr;
  thunk::Event* exception_event_ = nullptr;
};

}  // namespace sdma::inline v0::detail
