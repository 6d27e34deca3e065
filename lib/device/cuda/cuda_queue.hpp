// SPDX-License-Identifier: MIT
#pragma once
// A queue of the CUDA device: its ring, its front end, and the stream that executes its packets.
//
//   doorbell -> step(): the front end fetches and checks a packet; `issue` turns it into commands of the stream:
//
//     done     it has been issued: rptr may move past it
//     room     the stream holds kWindow unfinished commands: come back when some are finished
//     thread   the device's thread must do it, after everything earlier is complete (`step(Who::thread)`)
//     refused  a fault: the queue stops
//
//   commands    1 2 3 ... 64 [report 64] 65 ...    after a batch and at least every kReport commands, the stream writes
//                                                  their number into a word of the queue: what is finished is known
//                                                  without a call
//
// Publishers and the device's thread both issue packets; a thread that comes second leaves the work to the first. The
// publisher issues all that it has published, unless the window is full or a packet needs the thread: so one that feeds
// a running stream wakes no thread. No call of the driver that may block is made here: at most kWindow commands are
// unfinished, and a stream takes some more.
//
// One stream, in order: a packet starts after all earlier packets of its queue are complete, except the copies of one
// batch. Nothing allocates after construction. Internal. Errors: faults, to the node.
#include "../../engine/front.hpp"
#include "../published.hpp"
#include "commands.hpp"
#include "sdma/queue/ring.hpp"

#include <atomic>
#include <mutex>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

class Node;

enum class Who : std::uint8_t { publisher, thread };
enum class Issued : std::uint8_t { done, room, thread, refused };

/// What a queue needs that the node creates for it.
struct QueueParts {
  std::uint64_t id{};
  RingMemory ring{};
  std::uint32_t slot{};  ///< on its engine: 0 to queues_per_engine - 1
  EngineId engine{};
  GpuId gpu{};
  bool stream_waits = true;  ///< false: every poll is left to the device's thread
};

class CudaQueue {
 public:
  CudaQueue(Node&, PhysicalGpu&, AddressSpace&, const QueueParts&, const CommandParts&);
  ~CudaQueue();
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  /// A publisher has stored the doorbell.
  void ring() noexcept;
  /// Issues what it can. For the thread: also does what the thread must do, and reports interrupts and errors.
  Progress step(Who) noexcept;
  /// A queue of the same GPU has come or gone: see published.hpp.
  void map() noexcept {
    const std::lock_guard lock(mutex_);
    published_.map();
  }
  /// Issues nothing more, and waits for what has been issued. False: a
  /// command waits at a poll that is not satisfied, or does not end.
  bool retire() noexcept;

  /// Holds up its commands while it owns the lock. It may not own it.
  std::unique_lock<std::mutex> hold_up() noexcept { return {mutex_, std::try_to_lock}; }

  /// Does the queue wait for something that only the thread can do, or tell?
  bool urgent() const noexcept { return urgent_.load(std::memory_order_relaxed); }
  /// Is it room in the stream that it waits for, and nothing else?
  bool full() const noexcept { return full_.load(std::memory_order_relaxed); }
  /// How many commands have been issued; may be out of date by those that are being issued.
  std::uint64_t issued() const noexcept { return issued_.load(std::memory_order_acquire); }
  /// Notices an error of a command that is not complete yet.
  void look_for_errors() noexcept { (void)has_finished(issued()); }
  /// Are so many complete? May say no although they are.
  bool has_finished(std::uint64_t command) noexcept;

  const QueueParts& parts() const noexcept { return parts_; }
  PhysicalGpu& physical() noexcept { return gpu_; }
  Commands& commands() noexcept { return commands_; }

 private:
  Progress advance(Who) noexcept;
  void stop(const Fault&) noexcept;
  void take_interrupts() noexcept;
  void drop_met_waits() noexcept;
  void watch_polls() noexcept;
  /// Is the stream at a wait, or may it be? What is issued then costs the engine alone.
  bool held_up() noexcept;

  // issue.cpp: one overload a packet, in the order of Packets.
  Issued issue_current() noexcept;
  template <class P> Issued issue(const P&) noexcept;
  Issued issue(const Nop&) noexcept { return Issued::done; }
  Issued issue(const CopyLinear&) noexcept;
  Issued issue(const CopyBroadcast&) noexcept;
  Issued issue(const CopyStruct&) noexcept;
  Issued issue(const CopySubwindow&) noexcept;
  Issued issue(const CopyDirtyPage&) noexcept;
  Issued issue(const CopySwap&) noexcept;
  Issued issue(const Write&) noexcept;
  Issued issue(const Indirect&) noexcept;
  Issued issue(const Fence&) noexcept;
  Issued issue(const Trap&) noexcept;
  Issued issue(const PollMem&) noexcept;
  Issued issue(const HdpFlush&) noexcept;
  Issued issue(const Atomic&) noexcept;
  Issued issue(const Fill&) noexcept;
  Issued issue(const FillMulti&) noexcept;
  Issued issue(const Timestamp&) noexcept;
  Issued issue(const DummyTrap&) noexcept { return Issued::done; }

  Issued issue_box(const Region& from, const Region& to) noexcept;
  template <class P> Issued by_thread(const P&) noexcept;
  Issued poll_by_thread(const PollMem&) noexcept;
  Issued refuse(std::string_view reason) noexcept;
  Issued outcome(Outcome) noexcept;
  bool on_host(GpuVa va, Access a) noexcept;
  bool one_allocation(GpuVa va, std::uint64_t bytes, Access a) noexcept;
  bool stream_can_wait(const PollMem&) noexcept;
  /// True: the thread is here, and all earlier commands are complete.
  bool thread_is_next() noexcept;

  Node& node_;
  PhysicalGpu& gpu_;
  const QueueParts parts_;

  std::mutex mutex_;  // guards everything below, except the atomics
  AddressSpace::Reader reader_;
  Published published_;
  FrontEnd front_;
  Commands commands_;
  EngineState state_;
  Who who_ = Who::publisher;
  Outcome outcome_ = Outcome::done;  ///< of the current packet, for the front end
  std::uint64_t at_ = 0;             ///< how much of the current packet has been issued: bytes or rows
  Fault why_{};
  bool stopped_ = false;
  bool needs_thread_ = false;  ///< a packet waits for it, or for room
  bool only_thread_ = false;   ///< a publisher cannot issue that packet

  /// A stream's cyclic wait that may not be over, and the word that it waits for.
  struct Wait {
    std::uint64_t command;
    const std::uint32_t* word;  ///< null: not in host memory
    std::uint32_t bound;        ///< ge
    bool equal;
  };
  struct Interrupt {
    std::uint64_t command;
    std::uint32_t context;
  };
  Fifo<Wait, Commands::kWindow> waits_;
  Fifo<Interrupt, 64> interrupts_;
  Deadline::Clock::time_point suspect_since_{};  ///< since when a wait looks as if CUDA compared differently

  std::atomic<bool> urgent_{false}, full_{false};
  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint32_t> rung_{0};
};

}}}  // namespace sdma::v0_3::detail::cuda
