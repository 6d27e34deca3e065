// SPDX-License-Identifier: MIT
#pragma once
// One GPU of one process: a thread that serves all its queues, engine by engine, and notices doorbells by itself.
//
//   server.make_room();                                    // may throw
//   { Server::Unmapped none(server); server.add(...); }    // between two rounds, all queues unmapped and mapped again
//
//   round     for each queue: read the doorbell, then one step. A poll
//             that holds its engine delays the engine's other queues
//   bound     a step moves a few MiB, however large its packet is. If an ioctl wants the queues, the round ends after
//             the present step, and the next round begins with the next queue: no ioctl waits for more than one step
//   busy      rounds follow each other
//   idle      spins for kNodePace.spin, then sleeps until the doorbell page is written (see doorbells.hpp); only for
//             short times if a poll waits for memory, because the program may store to it at any time
//
// The thread starts with the first queue and blocks all signals. It runs until the process ends, because a node with
// queues is never destroyed. With Drive::caller there is no thread: the test calls `turn`.
// Any thread except the server's may use Unmapped. A step calls back into Events, but never takes the node's lock.
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

/// Which thread runs the rounds of a server.
enum class Drive : std::uint8_t { thread, caller };

class Server final : private sdma::detail::Worker::Served {
 public:
  /// `worked`: called after each round of the thread that made progress, because others may wait for its stores.
  /// `activity`: counts the steps of sDMA queues that made progress; may be null.
  Server(GpuId, std::uint32_t gpu_id, AddressSpace&, Events&, const DoorbellPage&, std::uint64_t* activity,
         std::function<void()> worked, Drive = Drive::thread);
  ~Server();

  /// While it exists, no queue is mapped.
  class Unmapped {
   public:
    explicit Unmapped(Server& s) noexcept : s_(s) { s_.unmap(); }
    ~Unmapped() { s_.map(); }
    Unmapped(const Unmapped&) = delete;
    Unmapped& operator=(const Unmapped&) = delete;

   private:
    Server& s_;
  };
  /// Makes sure that there is a thread, and room for one more queue. Throws std::bad_alloc or std::system_error.
  void make_room();
  // Call the next two while no queue is mapped.
  void add(std::unique_ptr<HwQueue>) noexcept;  ///< requires make_room
  std::unique_ptr<HwQueue> remove(std::uint32_t id) noexcept;
  /// Call it where no other thread adds or removes a queue. Only `exceptions` may be used while the queue is mapped.
  HwQueue* find(std::uint32_t id) noexcept;

  AddressSpace::Reader& reader() noexcept { return reader_; }
  Events& events() noexcept { return events_; }
  EngineState& state(EngineId e) noexcept { return states_[e.value]; }
  PipelineHooks hooks() noexcept;
  /// Runs one round. For Drive::caller only.
  Progress turn() noexcept;
  /// Call it after a store that a poll of this GPU may wait for.
  void nudge() noexcept;

  /// Handles a VM fault of one of our queues: stops all of them and notifies the process. Called from within a step.
  void vm_fault(GpuVa, bool mapped) noexcept;

 private:
  static constexpr std::uint32_t kEngines = 64;

  using Worker = sdma::detail::Worker;

  void unmap() noexcept;
  void map() noexcept;
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
  std::uint64_t* const activity_;
  const std::function<void()> worked_;
  Events& events_;
  AddressSpace::Reader reader_;
  std::array<EngineState, kEngines> states_{};
  Doorbells doorbells_;

  Worker worker_;  // its lock guards everything from here to evicted_
  std::vector<std::unique_ptr<HwQueue>> queues_;
  std::array<HwQueue*, kEngines> holders_{};
  std::size_t next_ = 0;  ///< where a round begins that follows one that ended early
  bool evict_ = false;
  bool evicted_ = false;  ///< set by a VM fault: queues that are created later do not run either
  bool exempt_ = false;   ///< the thread is exempt from ThreadSanitizer
  EngineId serving_{};    ///< the engine whose step runs

  std::atomic<bool> polls_{false};  ///< asleep while a poll waits
};

}  // namespace sdma::emulator
