// SPDX-License-Identifier: MIT
#pragma once
// Ownership of a queue: ring memory attached to an engine, and the function that destroys it.
//
//   Result<Queue, Diagnostic> q = device.create_queue({.gpu = GpuId{0}, .engine = EngineId{14}});
//   Ring<> ring{q->memory()};
//   ...
//   q->reset();                          // or the destructor: the engine forgets the queue, its memory is freed
//
// A Queue is move-only and allocates nothing itself. Destruction does not drain the queue: packets that the engine has
// not read never run, and a copy in flight may remain partial. So wait for a completion first. Once the destructor has
// returned, the engine no longer touches the ring or any memory that the packets refer to. Free signals and buffers
// after the queue, never before.
//
// Destruction waits for what the engine is executing, not for what it polls; the device's header has a bound, if there
// is one (device/cuda.hpp). On hardware, creating or destroying a queue briefly unmaps all queues of the GPU: keep both
// out of measurements. One thread at a time. No errors.
#include "sdma/core/lease.hpp"
#include "sdma/core/units.hpp"
#include "sdma/queue/ring.hpp"

#include <utility>

namespace sdma { inline namespace v0_3 {

class Queue {
 public:
  Queue() = default;
  /// The id of the lease is the id of the queue.
  Queue(Lease lease, const RingMemory& m, GpuId gpu, EngineId engine) noexcept
      : lease_(std::move(lease)), memory_(m), gpu_(gpu), engine_(engine) {}

  /// Destroys the queue now, if there is one.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

  /// The memory of its ring: what a Ring is made of.
  [[nodiscard]] const RingMemory& memory() const noexcept { return memory_; }
  /// The GPU whose engine serves it.
  [[nodiscard]] GpuId gpu() const noexcept { return gpu_; }
  /// The engine that serves it.
  [[nodiscard]] EngineId engine() const noexcept { return engine_; }
  /// The device's id of the queue, which faults and traces also use.
  [[nodiscard]] std::uint64_t id() const noexcept { return lease_.id(); }

 private:
  Lease lease_;
  RingMemory memory_{};
  GpuId gpu_{};
  EngineId engine_{};
};

}}  // namespace sdma::v0_3
