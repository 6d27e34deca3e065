// SPDX-License-Identifier: MIT
#pragma once
// A queue as the node's thread serves it: its doorbell, its pointers, and one step of its work.
//
//   q.map();                     // queues of the GPU were created or destroyed: the doorbell is forgotten, wptr counts
//   q.look();                    // did the doorbell move?
//   q.step()                     // Progress, as for a Pipeline
//
// One thread at a time: one of the GPU's server or, between two of its rounds, the thread that holds the server.
#include "../../engine/pipeline.hpp"
#include "../../kfd/abi.hpp"
#include "events.hpp"

#include <sys/eventfd.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

namespace sdma::emulator {

/// Exceptions that a debugger of the process may ask for: bits in the status
/// of a queue, a GPU or the process, recorded only while a debugger is there.
///
///   exceptions.raise(queue.exceptions, kfd::exception_bit(19));
///
/// Any thread may call anything, engine threads included. Nothing allocates or fails.
class Exceptions {
 public:
  void begin(std::uint64_t subscribed) noexcept {
    subscribe(subscribed);
    on_.store(true, std::memory_order_release);
  }
  void end() noexcept { on_.store(false, std::memory_order_release); }
  /// The exceptions about which the debugger is notified.
  void subscribe(std::uint64_t mask) noexcept { subscribed_.store(mask, std::memory_order_release); }
  std::uint64_t subscribed() const noexcept { return subscribed_.load(std::memory_order_acquire); }
  /// An eventfd that is rung for each exception with a subscription; -1: none.
  void ring(int eventfd) noexcept { bell_.store(eventfd, std::memory_order_release); }

  void raise(std::atomic<std::uint64_t>& status, std::uint64_t bits) noexcept {
    if (!on_.load(std::memory_order_acquire)) return;
    status.fetch_or(bits, std::memory_order_acq_rel);
    const int bell = bell_.load(std::memory_order_acquire);
    if ((subscribed() & bits) != 0 && bell >= 0) (void)::eventfd_write(bell, 1);
  }

 private:
  std::atomic<bool> on_{false};
  std::atomic<std::uint64_t> subscribed_{0};
  std::atomic<int> bell_{-1};
};

class HwQueue {
 public:
  HwQueue(std::uint32_t queue_id, EngineId e, std::uint64_t* doorbell, const std::uint64_t* wptr)
      : id(queue_id), engine(e), cell_(doorbell), wptr_(wptr) {}
  virtual ~HwQueue() = default;
  HwQueue(const HwQueue&) = delete;
  HwQueue& operator=(const HwQueue&) = delete;

  const std::uint32_t id;
  const EngineId engine;
  bool active = true;      ///< has a ring and a share of the GPU
  bool evicted = false;    ///< after a VM fault: never runs again
  bool suspended = false;  ///< by a debugger
  bool at_rest = true;     ///< nothing to do before the doorbell changes
  /// Its exceptions, for debuggers; any thread may change it.
  std::atomic<std::uint64_t> exceptions{kfd::exception_bit(kfd::kExceptionQueueNew)};

  bool runs() const noexcept { return active && !evicted && !suspended; }
  /// To hardware, a doorbell is an event; here it is a value in memory. The value is cleared once it has been seen,
  /// because the same value may be rung again. The doorbell is read first: if a producer stores wptr and rings between
  /// the two accesses, its doorbell is still seen.
  void map() noexcept {
    __atomic_store_n(cell_, kSilent, __ATOMIC_SEQ_CST);
    mapped_at_ = __atomic_load_n(wptr_, __ATOMIC_SEQ_CST);
    remapped_ = true;
  }
  /// True if the doorbell was rung or the queue was mapped again. The queue then has the new position.
  bool look() noexcept {
    auto position = __atomic_load_n(cell_, __ATOMIC_ACQUIRE);
    if (position != kSilent) position = __atomic_exchange_n(cell_, kSilent, __ATOMIC_ACQ_REL);
    else if (remapped_) position = mapped_at_;
    else return false;
    remapped_ = false;
    told_ = position;
    at_rest = false;
    rung(position);
    return true;
  }
  virtual Progress step() noexcept = 0;
  /// How many bytes the last step has moved.
  virtual std::uint64_t moved() const noexcept { return 0; }
  /// True while a poll of this queue waits and keeps the engine from its other queues.
  virtual bool holds_engine() const noexcept { return false; }
  std::uint64_t told() const noexcept { return told_; }

 protected:
  virtual void rung(std::uint64_t position) noexcept = 0;

 private:
  static constexpr std::uint64_t kSilent = ~std::uint64_t{0};  ///< not a position: those are multiples of 4, or small
  std::uint64_t* cell_;
  const std::uint64_t* wptr_;
  std::uint64_t told_ = 0, mapped_at_ = 0;
  bool remapped_ = false;
};

/// What a compute queue needs, whichever packets it reads.
struct ComputeConfig {
  std::uint32_t id{};
  GpuId gpu{};
  std::span<std::uint32_t> ring{};  ///< a power of two
  std::uint64_t *doorbell{}, *wptr{}, *rptr{};
  GpuVa rptr_va{};
  GpuVa save_area{};       ///< 0 unless a runtime has asked for the queues' exceptions
  std::uint32_t xccs = 1;  ///< compute dies of the GPU's partition
  AddressSpace::Reader* reader{};
  Events* events{};
  Exceptions* exceptions{};  ///< of the process; null: no debugger can be there
  std::function<void(GpuVa)> vm_fault{};
};

/// An sDMA queue: a doorbell, and the engine's pipeline.
class SdmaQueue final : public HwQueue {
 public:
  SdmaQueue(const PipelineConfig& c, std::uint64_t* doorbell, const std::uint64_t* wptr)
      : HwQueue(static_cast<std::uint32_t>(c.queue), c.engine, doorbell, wptr), reader_(*c.reader), pipeline_(c) {}
  Progress step() noexcept override {
    const AddressSpace::Reader::Section section(reader_);
    return pipeline_.step(kBudget);
  }
  std::uint64_t moved() const noexcept override { return pipeline_.moved(); }
  bool holds_engine() const noexcept override { return pipeline_.holds_engine(); }

 private:
  static constexpr std::uint32_t kBudget = 32;  ///< actions before the next queue has its turn
  void rung(std::uint64_t position) noexcept override { pipeline_.doorbell(position); }

  AddressSpace::Reader& reader_;
  Pipeline pipeline_;
};

}  // namespace sdma::emulator
