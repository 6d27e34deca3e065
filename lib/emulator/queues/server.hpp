#pragma once
// One GPU of one process: a thread that serves all its queues, engine by engine, and learns of doorbells by itself.
//
//   server.change([&] { queues.push_back(...); });     // between two rounds, all queues unmapped and mapped again
//
//   round     each queue: look at the doorbell, then one step; a poll that holds its engine keeps its neighbours waiting
//   busy      rounds follow each other
//   nothing   spins for kNodePace.spin, then sleeps: until the doorbell page is written (see doorbells.hpp), or in naps if a
//             poll waits for memory that the program may store at any time
//
// The thread starts with the first queue and blocks all signals. It runs until the process ends, since no node with queues is
// ever destroyed. With Drive::caller there is no thread: the test calls `turn`.
// `change` from any thread but this one. A step calls back into Events, never into anything that takes the node's lock.
#include "../../engine/worker.hpp"
#include "../trace.hpp"
#include "doorbells.hpp"
#include "events.hpp"
#include "hw_queue.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace sdma::emulator {

/// Who makes the rounds of a server.
enum class Drive : std::uint8_t { thread, caller };

class Server final : private sdma::detail::Worker::Served {
 public:
  /// `worked`: called after each round of the thread that did something, for others may wait for what it stored.
  Server(GpuId, std::uint32_t gpu_id, AddressSpace&, Events&, const DoorbellPage&, std::function<void()> worked,
         Drive = Drive::thread);
  ~Server();

  /// Runs `fn` while no queue is mapped.
  void change(const std::function<void()>& fn);
  void add(std::unique_ptr<HwQueue>);
  std::unique_ptr<HwQueue> remove(std::uint32_t id);
  HwQueue* find(std::uint32_t id) noexcept;

  AddressSpace::Reader& reader() noexcept { return reader_; }
  Events& events() noexcept { return events_; }
  EngineState& state(EngineId e) noexcept { return states_[e.value]; }
  GpuId gpu() const noexcept { return gpu_; }
  PipelineHooks hooks() noexcept;
  /// Drive::caller: one round.
  Progress turn() noexcept;
  /// Somebody stored something that a poll of ours may wait for.
  void nudge() noexcept;

  /// A VM fault of a queue of ours: all stop, the process is told. From within a step.
  void vm_fault(GpuVa, Access, bool mapped) noexcept;

 private:
  static constexpr std::uint32_t kEngines = 64;

  using Worker = sdma::detail::Worker;

  Progress round() noexcept override;
  bool spin(bool fresh) noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;
  void wake() noexcept override { doorbells_.knock(); }
  Progress serve_all() noexcept;
  Progress serve(HwQueue&) noexcept;
  void on_fault(const Fault&) noexcept;

  const GpuId gpu_;
  const std::uint32_t gpu_id_;
  const Drive drive_;
  const std::function<void()> worked_;
  Events& events_;
  AddressSpace::Reader reader_;
  std::array<EngineState, kEngines> states_{};
  Doorbells doorbells_;

  Worker worker_;  // its lock guards everything from here to evicted_
  std::vector<std::unique_ptr<HwQueue>> queues_;
  std::array<HwQueue*, kEngines> holders_{};
  bool evict_ = false;
  bool evicted_ = false;  ///< since a VM fault: queues that are made later do not run either
  EngineId serving_{};    ///< whose step it is

  std::atomic<bool> polls_{false};  ///< asleep with a poll that waits
};

}  // namespace sdma::emulator
