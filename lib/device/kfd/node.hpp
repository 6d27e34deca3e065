#pragma once
// What the handles of one KFD device share: the driver's descriptor, memory, signals, events, queues and faults.
//
// The node exists until the device and every handle are destroyed: each holds a reference. The device's destructor
// disables its queues; their rings and pointers stay until the handles are destroyed.
//
// Locks, in the order in which they may be taken: `queues_mutex_`, `memory_`, `faults_mutex_`. None is held across a wait.
// Internal to the library.
#include "../request.hpp"
#include "../signal_slots.hpp"
#include "driver.hpp"
#include "drm.hpp"
#include "probe.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

class KfdNode {
 public:
  static Result<KfdNode*, Diagnostic> open(const KfdOptions&);
  KfdNode(const KfdNode&) = delete;
  KfdNode& operator=(const KfdNode&) = delete;

  void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  /// Gives up a reference; the last call deletes the node.
  static void drop(KfdNode*) noexcept;
  /// Stops execution: disables all queues.
  void stop() noexcept;

  Result<Memory, Diagnostic> allocate(const MemoryRequest&);
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
  /// False in the child of a fork: to the driver, everything belongs to the parent.
  bool in_opening_process() const noexcept;

 private:
  struct Block {
    void* base{};  ///< the address that libhsakmt returned
    std::uint64_t base_bytes{};
    GpuVa va{};
    std::uint64_t bytes{};
    std::byte* host{};  ///< null: not mapped for the host
    std::optional<GpuId> owner{};
  };
  struct GpuState {
    std::uint32_t thunk_node{}, gpu_id{};
    volatile std::uint32_t* hdp_flush{};  ///< null: the driver does not offer it
    std::byte* doorbells{};               ///< of queues that the ioctl creates
    std::uint64_t clock_hz{};
    std::optional<Fault> fault{};  ///< the first fault, after which the GPU's queues are lost for good
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
  Diagnostic forked_error(const char* where) const;

  Result<std::uint64_t, Diagnostic> allocate_block(const MemoryRequest&);
  std::optional<Block> block(std::uint64_t id) const;
  void free_block(std::uint64_t id) noexcept;
  void free_signal(std::uint64_t id) noexcept;
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

  /// The function with which a handle gives back its lease.
  template <void (KfdNode::*F)(std::uint64_t) noexcept> static void give_back(void* node, std::uint64_t id) noexcept {
    auto* n = static_cast<KfdNode*>(node);
    if (!n->in_opening_process()) return;  // the parent frees it
    (n->*F)(id);
    drop(n);
  }

  const SysfsNode node_;
  const thunk::Thunk& thunk_;
  const std::uint32_t cpu_node_;
  const int opener_pid_;  ///< the process that opened the device
  int fd_ = -1;
  bool opened_ = false;
  thunk::Version version_{};
  std::vector<GpuState> gpus_;
  std::vector<KfdGpu> identities_;
  std::atomic<std::uint64_t> holders_{1};

  mutable std::mutex memory_;
  std::map<std::uint64_t, std::pair<std::uint64_t, Block>> by_va_;  ///< VA -> (id, block)
  std::unordered_map<std::uint64_t, std::uint64_t> va_of_;          ///< id -> VA
  SignalSlots signals_;
  std::vector<std::uint64_t> signal_pages_;
  std::unordered_map<std::uint32_t, thunk::Event*> events_;
  std::uint64_t next_id_ = 1;

  std::mutex queues_mutex_;
  std::unordered_map<std::uint64_t, QueueState> queues_;
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

}  // namespace detail
}  // namespace v0
}  // namespace sdma
