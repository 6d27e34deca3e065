// SPDX-License-Identifier: MIT
#pragma once
// One engine of the software device: a thread that serves the rings of its queues.
//
//   SoftEngine e{node, GpuId{0}, EngineId{14}};
//   e.add(std::move(queue));           // the first call starts the thread
//   e.wake();                          // after a doorbell
//   auto q = e.remove(id);             // the engine no longer touches anything of the queue
//
// A round checks the doorbell of each queue once and steps its pipeline. Changes are made under the worker's lock,
// between two rounds. Any thread may call the public functions. Internal to the library.
#include "../engine/worker.hpp"
#include "bells.hpp"
#include "published.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/queue/ring.hpp"
#include "sleepers.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class SoftNode;
class SoftEngine;

/// A queue as its engine sees it.
struct SoftQueue {
  std::uint64_t id{};
  std::uint32_t slot{};  ///< 0 to queues_per_engine - 1
  RingMemory ring{};
  std::vector<std::uint64_t> blocks{};  ///< ids of its blocks of the node's memory: ring, pointers, doorbell
  trace::Recorder* trace{};
  trace::LaneId lane{};
  SoftEngine* engine{};
  std::unique_ptr<Pipeline> pipeline{};
  std::optional<Nap> nap{};  ///< of an adversarial queue

  std::optional<Published> published{};
  std::uint64_t last_doorbell{};                      ///< the last doorbell value that the pipeline was given
  bool at_rest = true;                                ///< idle or stopped: nothing to do before the next doorbell
  Deadline::Clock::time_point poll_doorbell_until{};  ///< its doorbell is stored without `wake`: poll it until then
};

class SoftEngine final : private Worker::Served {
 public:
  SoftEngine(SoftNode&, GpuId, EngineId);
  ~SoftEngine();
  SoftEngine(const SoftEngine&) = delete;
  SoftEngine& operator=(const SoftEngine&) = delete;

  /// The first call starts the thread. False if the thread could not be started; the queue is then destroyed.
  bool add(std::unique_ptr<SoftQueue>);
  std::unique_ptr<SoftQueue> remove(std::uint64_t id);
  /// The queues were unmapped and are mapped again.
  void map_all();
  /// One action of a queue, for the holder of a Baton; `round` then does nothing. False: none is possible.
  bool turn(SoftQueue&) noexcept;
  /// The queues that it has, by age. Returns when no round is in progress.
  std::vector<SoftQueue*> queues() const;
  /// The lowest free slot; `queues_per_engine` if all are taken.
  std::uint32_t free_slot() const;
  EngineCounters counters() const;

  /// Call it after a doorbell was rung, or after a change of a word that a poll may wait for.
  void wake() noexcept override {
    if (!awake_.load(std::memory_order_relaxed)) set_awake(true);
    parking_.wake();
  }
  /// For the scan thread: if a doorbell was rung without `wake`, wakes the engine and returns true.
  bool scan_doorbells() noexcept;
  /// Ends the thread. Queues stay, but are no longer served.
  void stop() noexcept;

  AddressSpace::Reader& reader() noexcept { return reader_; }
  SoftNode& node() noexcept { return node_; }
  EngineState& state() noexcept { return state_; }
  /// May one of its polls wait for this word? The answer may be true for a word that no poll waits for, but it is never
  /// false for a word that a poll waits for.
  bool polls(GpuVa va) const noexcept { return (polled_.load(std::memory_order_seq_cst) & bit_of(va)) != 0; }
  GpuId gpu() const noexcept { return gpu_; }

 private:
  Progress round() noexcept override;
  bool spin(bool fresh) noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;
  Progress serve(SoftQueue&, std::uint32_t budget) noexcept;
  void set_waiting(std::uint64_t polled) noexcept;
  /// The node counts the engine as awake from the call of `wake`, not from the moment when its thread gets a core.
  void set_awake(bool) noexcept;
  void sleep(Deadline) noexcept;
  /// The bit of a word in a set of 64; both halves of a word have the same bit.
  static std::uint64_t bit_of(GpuVa va) noexcept { return std::uint64_t{1} << ((va.value >> 3 ^ va.value >> 6) & 63); }
  bool polls_doorbells() const noexcept;

  SoftNode& node_;
  const GpuId gpu_;
  const EngineId engine_;
  EngineState state_;
  AddressSpace::Reader reader_;

  mutable Worker worker_;  // its lock guards everything from here to `destroyed_counters_`
  std::vector<std::unique_ptr<SoftQueue>> queues_;
  std::size_t next_ = 0;               // the queue to serve first
  SoftQueue* engine_owner_ = nullptr;  // the queue whose poll keeps the engine
  EngineCounters destroyed_counters_;  // the counters of destroyed queues

  Bells::Park& parking_;
  std::atomic<bool> awake_{false};
  std::atomic<std::uint64_t> polled_{0};  // bits of the words that polls wait for, as other threads see them

  // Used only by the thread.
  std::uint32_t ticket_ = 0;  // taken before the round's first check
  bool spinning_ = false, raw_ = false;
  bool naps_ = false;                              // does one of its queues sleep?
  std::uint64_t polls_ = 0, published_polls_ = 0;  // bits of the words that the last round waits for; as last published
};

}}}  // namespace sdma::v0_3::detail
