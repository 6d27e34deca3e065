#pragma once
// Ownership of a queue: ring memory attached to an engine, and the function that destroys it.
//
//   Result<Queue, Diagnostic> q = device.create_queue({.gpu = GpuId{0}, .engine = EngineId{14}});
//   Ring<> ring{q->memory()};
//   ...
//   q->reset();                          // or the destructor: the engine forgets the queue, its memory is freed
//
// Move-only; allocates nothing itself. Destruction does not drain the queue: packets that the engine has not read never
// run, and a copy in flight may be left partial, so wait for a completion first. Once it returns, the engine touches
// neither the ring nor anything that its packets named. Free signals and buffers after the queue, never before.
//
// On hardware, creating or destroying a queue briefly unmaps all queues of the GPU: keep both out of measurements.
// One thread at a time. No errors.
#include "sdma/core/units.hpp"
#include "sdma/queue/ring.hpp"

#include <utility>

namespace sdma {
inline namespace v0 {

class Queue {
 public:
  /// Called once, with the `owner` and the `id` that made the queue.
  using Destroy = void (*)(void* owner, std::uint64_t id) noexcept;

  Queue() = default;
  Queue(const RingMemory& m, GpuId gpu, EngineId engine, std::uint64_t id, Destroy destroy, void* owner) noexcept
      : memory_(m), gpu_(gpu), engine_(engine), id_(id), destroy_(destroy), owner_(owner) {}
  Queue(Queue&& o) noexcept
      : memory_(o.memory_),
        gpu_(o.gpu_),
        engine_(o.engine_),
        id_(o.id_),
        destroy_(std::exchange(o.destroy_, nullptr)),
        owner_(o.owner_) {}
  Queue& operator=(Queue&& o) noexcept {
    if (this == &o) return *this;
    reset();
    memory_ = o.memory_;
    gpu_ = o.gpu_;
    engine_ = o.engine_;
    id_ = o.id_;
    destroy_ = std::exchange(o.destroy_, nullptr);
    owner_ = o.owner_;
    return *this;
  }
  ~Queue() { reset(); }

  /// Destroys the queue now, if there is one.
  void reset() noexcept {
    if (destroy_) std::exchange(destroy_, nullptr)(owner_, id_);
  }
  explicit operator bool() const noexcept { return destroy_ != nullptr; }

  const RingMemory& memory() const noexcept { return memory_; }
  GpuId gpu() const noexcept { return gpu_; }
  EngineId engine() const noexcept { return engine_; }
  std::uint64_t id() const noexcept { return id_; }  ///< the device's id for it, also in faults and traces

 private:
  RingMemory memory_{};
  GpuId gpu_{};
  EngineId engine_{};
  std::uint64_t id_{};
  Destroy destroy_ = nullptr;
  void* owner_ = nullptr;
};

}  // namespace v0
}  // namespace sdma
