// SPDX-License-Identifier: MIT
#pragma once
// What the engines and handles of one software device share: memory, signals, events, faults, and the list of waiters.
//
// The device's destructor stops the threads; queues and memory stay in place until their handles are destroyed.
//
// Locks, in the order in which they may be taken: `creation_` (queues are created and destroyed), an engine's mutex,
// `memory_`, then the others. No engine thread takes `creation_` or `memory_`. Internal to the library.
#include "../engine/park.hpp"
#include "driverless_node.hpp"
#include "sleepers.hpp"
#include "soft_engine.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

namespace sdma::inline v0::detail {

class SoftNode final : public DriverlessNode<SoftNode> {
 public:
  SoftNode(const SoftOptions&, Topology);
  void stop() noexcept;

  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&);
  Result<Queue, Diagnostic> create_queue(const QueueRequest&);
  /// A host has rung a doorbell of this engine.
  void on_doorbell(SoftEngine&) noexcept;
  std::optional<Fault> fault(std::uint64_t queue) const noexcept;
  std::uint64_t lost_faults() const noexcept;
  Errc peek(GpuVa, std::span<std::byte>) const noexcept;
  std::vector<EngineCounters> counters() const;

  const Topology& topology() const noexcept { return topology_; }
  const SoftOptions& options() const noexcept { return options_; }
  AddressSpace& space() noexcept { return space_; }
  bool adversarial() const noexcept { return options_.ordering == Ordering::adversarial; }
  /// Those of an adversarial node.
  Sleepers& sleepers() noexcept { return sleepers_; }

  // Called by engine threads.
  /// Call it after a store: wakes sleeping hosts, and engines with pending polls.
  void wake_after_store() noexcept;
  void set_waiting(GpuId, EngineId, bool) noexcept;
  /// Counts engines that are awake: an engine must not spin if others need its core.
  void count_awake(bool more) noexcept { awake_.fetch_add(more ? 1 : ~0u, std::memory_order_relaxed); }
  bool crowded() const noexcept { return awake_.load(std::memory_order_relaxed) > may_spin_ + 1; }
  bool begin_spinning() noexcept;
  void end_spinning() noexcept { spinning_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  friend SharedNode;
  friend DriverlessNode;
  ~SoftNode();

  struct Block {
    std::byte* pages{};
    std::size_t mapped{};  ///< bytes of `pages`, including the unmapped gap
    GpuVa va{};
    std::uint64_t bytes{};
    std::optional<GpuId> owner{};
  };

  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest&);
  void free_block(std::uint64_t id) noexcept;
  Result<RingMemory, Diagnostic> make_ring(const QueueRequest&, SoftQueue&);
  SoftEngine& engine(GpuId, EngineId);
  EngineId choose(const QueueRequest&);
  void map_queues(GpuId) noexcept;
  void destroy_queue(std::uint64_t id) noexcept;
  void scan() noexcept;
  template <class F> void wake_waiters(F which) noexcept;
  void delay_host() noexcept;
  static void sleep_for_signal(void* node, std::uint64_t* word, std::uint64_t seen, Deadline) noexcept;
  /// The Signal::wake hook: a host has stored this word.
  static void on_host_store(void* node, GpuVa) noexcept;

  /// Streams of random numbers, beside those of the pipelines.
  static constexpr std::uint64_t kQueueNaps = 2, kHosts = 3, kHostNaps = 4;

  const SoftOptions options_;
  const Topology topology_;
  AddressSpace space_;

  // Guarded by memory_.
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::vector<std::uint64_t> gpu_bytes_;
  std::uint64_t next_id_ = 1, next_va_ = 0;

  mutable std::mutex creation_;
  std::vector<std::unique_ptr<SoftEngine>> engines_;  ///< 64 per GPU; null until an engine has its first queue
  std::unordered_map<std::uint64_t, SoftEngine*> queues_;
  bool stopped_ = false;

  Sleepers sleepers_;
  std::mutex hosts_mutex_;
  Sleepiness hosts_{options_.seed, kHosts};  // guarded by hosts_mutex_, as is the number of their naps
  std::uint64_t host_naps_ = 0;
  std::atomic<bool> rung_{false};  // has any doorbell rung?

  Parking signal_sleepers_, scan_parking_;
  std::atomic<bool> scan_ends_{false};
  std::thread scan_thread_;
  std::atomic<std::uint32_t> waiting_engines_{0}, spinning_{0}, awake_{0};
  std::vector<std::atomic<std::uint64_t>> waiting_;  ///< one word per GPU; bit n: engine n has pending polls
  std::vector<std::atomic<SoftEngine*>> engine_of_;  ///< the same as engines_, for engine threads
  const std::uint32_t may_spin_;
};

}  // namespace sdma::inline v0::detail
