#pragma once
// A queue that somebody owns: ring memory on an engine, and how to give it back.
//
//   Result<Queue, Diagnostic> q = device.create_queue({.gpu = GpuId{0}, .engine = EngineId{14}});
//   Ring<> ring{q->memory()};
//   ...
//   q->reset();                          // or the destructor: the queue is gone from the engine, its memory is free
//
// Move-only, no allocation of its own. Destruction does not drain: packets that the engine has not read never run, and a
// copy in flight may be partial, so wait for a completion first. When it returns the engine touches neither the ring nor
// anything that its packets named. Free signals and buffers after the queue, never before.
// Creation and destruction unmap all queues of the GPU for a moment on hardware: keep them out of measurements.
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

  /// Destroys the queue now. Nothing where there is none.
  void reset() noexcept {
    if (destroy_) std::exchange(destroy_, nullptr)(owner_, id_);
  }
  explicit operator bool() const noexcept { return destroy_ != nullptr; }

  const RingMemory& memory() const noexcept { return memory_; }
  GpuId gpu() const noexcept { return gpu_; }
  EngineId engine() const noexcept { return engine_; }
  std::uint64_t id() const noexcept { return id_; }  ///< what the device calls it, also in faults and traces

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
