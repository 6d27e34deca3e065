#pragma once
// One engine of the software device: a thread that serves the rings of its queues.
//
//   SoftEngine e{node, GpuId{0}, EngineId{14}};
//   e.add(std::move(queue));           // starts the thread with the first one
//   e.knock();                         // behind a doorbell
//   auto q = e.remove(id);             // the engine touches nothing of it any more
//
// A round looks at each queue's doorbell, once, and steps its pipeline. Rounds and changes exclude each other by a mutex that
// the thread gives away whenever somebody has asked for it, also under load. Any thread; internal to the library.
#include "park.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/queue/ring.hpp"

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

class SoftNode;
class SoftEngine;

/// A queue as its engine sees it.
struct SoftQueue {
  std::uint64_t id{};
  std::uint32_t slot{};  ///< 0 to queues_per_engine - 1
  RingMemory ring{};
  std::vector<std::uint64_t> blocks{};  ///< of the node's memory: ring, pointers, doorbell
  trace::Recorder* trace{};
  trace::LaneId lane{};
  SoftEngine* engine{};
  std::unique_ptr<Pipeline> pipeline{};

  /// Position up to which the ring may be read.
  std::uint64_t published() const noexcept {
    const auto load = [](const std::uint64_t* w) { return order::Native::load(w, std::memory_order_acquire); };
    if (!ring.doorbell) return load(ring.wptr);
    const auto bell = load(ring.doorbell);
    return bell == forgotten ? mapped_at : bell;
  }
  /// The queue is mapped anew: the doorbell's value is gone, wptr counts. The doorbell first: a producer that stores both
  /// between the two loads is seen by its doorbell.
  void map() noexcept {
    if (ring.doorbell) forgotten = order::Native::load(ring.doorbell, std::memory_order_acquire);
    mapped_at = order::Native::load(ring.wptr, std::memory_order_acquire);
  }

  std::uint64_t told{};                     ///< what the pipeline knows of the doorbell
  std::uint64_t forgotten{}, mapped_at{};   ///< see map
  bool at_rest = true;                      ///< idle or stopped: nothing to do before another doorbell
  Deadline::Clock::time_point raw_until{};  ///< its doorbell is stored without a knock: look by oneself until then
};

class SoftEngine {
 public:
  SoftEngine(SoftNode&, GpuId, EngineId);
  ~SoftEngine();
  SoftEngine(const SoftEngine&) = delete;
  SoftEngine& operator=(const SoftEngine&) = delete;

  /// The first one starts the thread: false if there is none to be had, and the queue is gone.
  bool add(std::unique_ptr<SoftQueue>);
  std::unique_ptr<SoftQueue> remove(std::uint64_t id);
  /// The queues were unmapped and are mapped again.
  void map_all();
  /// The lowest slot that no queue has; `queues_per_engine` if all are taken.
  std::uint32_t free_slot() const;
  EngineCounters counters() const;

  /// A doorbell was rung, or a word has changed that may be waited for.
  void knock() noexcept {
    if (!awake_.load(std::memory_order_relaxed)) set_awake(true);
    parking_.knock();
  }
  /// For the patrol: is there a doorbell that nobody announced? Then the engine is woken.
  bool look_around() noexcept;
  /// Ends the thread; queues stay, unserved.
  void stop() noexcept;

  AddressSpace::Reader& reader() noexcept { return reader_; }
  SoftNode& node() noexcept { return node_; }
  EngineState& state() noexcept { return state_; }
  /// May one of its polls wait for this word? Yes, for some words that none waits for.
  bool polls(GpuVa va) const noexcept { return (polled_.load(std::memory_order_seq_cst) & bit_of(va)) != 0; }
  GpuId gpu() const noexcept { return gpu_; }

 private:
  enum class Outcome : std::uint8_t { idle, waiting, progressed };
  class Control;  // a lock that a busy engine gives way to

  void run() noexcept;
  Outcome round() noexcept;
  Outcome serve(SoftQueue&) noexcept;
  void rest(Outcome, std::uint32_t ticket) noexcept;
  void set_waiting(std::uint64_t polled) noexcept;
  /// Counted by the node from the knock on, not from when the thread has got a core.
  void set_awake(bool) noexcept;
  void sleep(std::uint32_t ticket, Deadline) noexcept;
  /// A word's bit in a set of 64; both halves of a word have the same.
  static std::uint64_t bit_of(GpuVa va) noexcept { return std::uint64_t{1} << ((va.value >> 3 ^ va.value >> 6) & 63); }
  bool served_raw() const noexcept;

  SoftNode& node_;
  const GpuId gpu_;
  const EngineId engine_;
  EngineState state_;
  AddressSpace::Reader reader_;

  mutable std::mutex mutex_;  // over all below to `stopping_`
  mutable std::condition_variable granted_;
  mutable std::atomic<std::uint32_t> asked_{0};  // who wants the mutex
  std::vector<std::unique_ptr<SoftQueue>> queues_;
  std::size_t next_ = 0;         // who is served first
  SoftQueue* holder_ = nullptr;  // its poll keeps the engine
  EngineCounters gone_;          // of queues that are no more
  bool stopping_ = false;

  Parking parking_;
  std::atomic<bool> awake_{false};
  std::atomic<std::uint64_t> polled_{0};  // bits of the words that are waited for, as others see it
  std::thread thread_;

  // The thread's own.
  bool spinning_ = false, raw_ = false;
  std::uint64_t polls_ = 0, told_polls_ = 0;  // bits of the words that the last round waits for; what others know of it
  Deadline::Clock::time_point last_work_{};
  std::chrono::nanoseconds nap_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
