#pragma once
// The devices of a node, whoever provides them: software (device/soft.hpp), or the kernel driver (device/kfd.hpp).
//
//   Result<std::unique_ptr<SoftDevice>, Diagnostic> device = SoftDevice::open({.gpus = 2});
//   Device& d = **device;
//   Memory a = *d.allocate({.where = GpuId{0}, .bytes = n}), b = *d.allocate({.where = GpuId{1}, .bytes = n});
//   SignalMemory done = *d.create_signal();
//   Queue q = *d.create_queue({.gpu = GpuId{0}, .engine = *d.topology().engine_for(GpuId{0}, GpuId{1})});
//   Ring<> ring{q.memory()};
//   ring.submit(CopyLinear{.src = a.va(), .dst = b.va(), .bytes = n}, Fence{.addr = done->va, .value = 1});
//   if (auto r = wait(*done, Compare::eq, 1, Deadline::in(1s), ring); !r) puts(describe(r.error()).c_str());
//
// A fault stops queues. `wait_fault` tells each once, `fault(queue)` says at any time whether the completions of a queue may
// be trusted: ask it where a wait has ended, be it with the value or without. A producer of a stopped queue sees no_space.
//
// Control only: no copy, publish or wait for a completion passes through here. Rings are written where they lie, memory is
// touched by its pointer, completion is a word. So nothing here needs to be fast, and everything may be virtual.
//
// Thread-safe: any thread may call anything. Creating or destroying a queue unmaps all queues of its GPU for a moment: a
// doorbell that rings meanwhile is lost, and the engine takes its position from wptr. Ring stores it first, always.
// Errors: a Diagnostic says what, where, and what to do; `wait_...` answer Errc::timed_out, `peek` Errc::unmapped.
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/memory.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/engine/fault.hpp"
#include "sdma/queue/queue.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sdma {
inline namespace v0 {

/// Which engine a queue is to be on.
enum class EnginePick : std::uint8_t {
  exact,     ///< QueueRequest::engine and no other
  any_host,  ///< one that faces the host, whichever the driver takes
  any_xgmi   ///< one that faces other GPUs, whichever the driver takes
};
/// What Queue::engine() is where the driver has chosen and does not tell.
inline constexpr EngineId kUnknownEngine{~std::uint32_t{0}};

struct QueueRequest {
  GpuId gpu{};
  EngineId engine{};
  EnginePick pick = EnginePick::exact;
  std::uint64_t ring_bytes = 64 * 1024;  ///< a power of two, 1 KiB at least
  int priority = 0;                      ///< -3 to 3; may be ignored
  bool watch_wptr = false;               ///< no doorbell: RingMemory::doorbell is null and the engine watches wptr
};

/// A GPU's clock, which TIMESTAMP stores, and the host's, read at one moment.
struct Clock {
  std::uint64_t ticks{};
  Deadline::Clock::time_point host{};
  std::uint64_t hz = 100'000'000;
  /// The host's time of a tick near this moment.
  Deadline::Clock::time_point at(std::uint64_t tick) const noexcept {
    const auto difference = static_cast<std::int64_t>(tick - ticks);
    return host + std::chrono::nanoseconds(difference * static_cast<std::int64_t>(1'000'000'000 / hz));
  }
};

class Device {
 public:
  virtual ~Device() = default;  ///< stops all engines; handles that are left stay valid and give back what they hold

  virtual const Topology& topology() const noexcept = 0;

  virtual Result<Memory, Diagnostic> allocate(const MemoryRequest&) = 0;
  virtual Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&) = 0;
  Result<SignalMemory, Diagnostic> create_signal() { return create_signal(SignalRequest{}); }
  virtual Result<Event, Diagnostic> create_event() = 0;
  virtual Result<Queue, Diagnostic> create_queue(const QueueRequest&) = 0;

  /// The next interrupt of `e`, which may have come before the call. timed_out.
  virtual Errc wait_event(const Event& e, Deadline) noexcept = 0;
  /// The oldest fault that nobody has taken yet. timed_out: none until then.
  virtual Result<Fault> wait_fault(Deadline) noexcept = 0;
  /// Why the completions of this queue are not to be trusted; none: nothing is known against them.
  virtual std::optional<Fault> fault(const Queue&) const noexcept = 0;
  /// Between this thread's stores to that GPU's memory and the doorbell: engines see them from here on. And between a
  /// completion and this thread's loads from that memory: they see what engines have stored. bad_argument: no such GPU.
  virtual Errc flush_host_writes(GpuId) const noexcept = 0;
  /// Bytes as they are now, for reports: unmapped rather than a crash. Costs a lock.
  virtual Errc peek(GpuVa, std::span<std::byte>) const noexcept = 0;
  /// bad_argument: no such GPU.
  virtual Result<Clock> clock(GpuId) const noexcept = 0;

 protected:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
};

}  // namespace v0
}  // namespace sdma
