#pragma once
// A node in software: GPUs, engines, queues and memory that run the same ring bytes by the same ring and doorbell protocol
// as hardware, and can be as weakly ordered as hardware may be.
//
//   auto device = SoftDevice::open({.gpus = 2, .ordering = Ordering::adversarial, .seed = 7});
//   if (!device) return fail(to_string(device.error()));
//   Device& d = **device;                                   // from here on as any other: see device/device.hpp
//
//   Ring -> wptr, doorbell -> wake --->  engine thread: reads up to the doorbell, never past it -> engine/pipeline.hpp
//                                        parks when idle (no CPU); looks again, ever less often, while a poll is not met
//   Signal::sleep  <---  woken when an engine has stored something; Signal::set and add (wake) wake engines that poll the word
//
// One thread for each engine that has a queue; it serves the engine's queues in turn. In adversarial mode a poll that waits
// may keep the engine from its other queues. After its last packet an engine looks for more for some microseconds, then
// parks. Wake-ups come from RingMemory::wake. A program that stores the doorbell itself and does not call it (a raw
// protocol) is served too: a patrol looks at all doorbells, at least every `patrol`, and engines found so look more often
// for a while. A polled word is seen at once when an engine or a host's Signal::set has stored it, and within a millisecond
// when a program has stored it by its address.
//
// Memory is real: GPU memory and host memory are pages of this process, a VA is the host's address unless `va_base` is set.
// What a request does not cover cannot be touched: behind each allocation lies a hole. Memory that a mask forbids to a GPU
// faults for its engines. Creation and destruction of a queue forget the doorbells of its GPU, as on hardware: positions
// come from wptr then.
//
// A fault stops its queue, and no other; wait_fault tells. What hardware would show instead: engine/fault.hpp. Destroying
// queues, memory or the device with work in flight is safe: when a queue's destructor returns, the engine touches nothing.
// Handles may outlive the device; nothing executes any more.
//
// After fork the child has memory and handles but no engines: creating there is an error, nothing executes, destructors
// leave everything to the parent, waits end at their deadlines. Open a new device.
//
// Thread-safe as Device is. Errors: Diagnostics as Device has them, and from open.
#include "sdma/device/device.hpp"
#include "sdma/engine/pipeline.hpp"
#include "sdma/trace/trace.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace sdma {
inline namespace v0 {

namespace detail {
class SoftNode;
}

struct SoftOptions {
  std::uint32_t gpus = 8;              ///< MI300X, 1 to 8
  std::optional<Topology> topology{};  ///< another node: up to 64 GPUs; `gpus` is not looked at
  Ordering ordering = Ordering::strict;
  std::uint64_t seed = 0;    ///< of rocr and adversarial; threads are not repeatable, choices are
  GpuVa va_base{};           ///< VAs count up from here and differ from host addresses; 0: they are the same
  trace::Recorder* trace{};  ///< not owned; must outlive the device and its queues. Null: no trace
  std::chrono::milliseconds patrol{50};  ///< until a doorbell that nobody announced is seen, at most; 0: never
};

/// What has gone through one engine since the device was opened, queues that are gone included.
struct EngineCounters {
  GpuId gpu{};
  EngineId engine{};
  std::uint64_t packets{}, bytes{};  ///< bytes: stored by copies, fills and writes
  std::uint64_t doorbells{};         ///< as the engine saw them: several may have become one
};

class SoftDevice final : public Device {
 public:
  static Result<std::unique_ptr<SoftDevice>, Diagnostic> open(const SoftOptions& = {});
  ~SoftDevice() override;

  const Topology& topology() const noexcept override;
  Result<Memory, Diagnostic> allocate(const MemoryRequest&) override;
  using Device::create_signal;
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&) override;
  Result<Event, Diagnostic> create_event() override;
  Result<Queue, Diagnostic> create_queue(const QueueRequest&) override;
  Errc wait_event(const Event&, Deadline) noexcept override;
  Result<Fault> wait_fault(Deadline) noexcept override;
  std::optional<Fault> fault(const Queue&) const noexcept override;
  Errc flush_host_writes(GpuId) const noexcept override;  ///< nothing to do here
  Errc peek(GpuVa, std::span<std::byte>) const noexcept override;
  Result<Clock> clock(GpuId) const noexcept override;

  /// Engines that have or had a queue, by GPU and engine.
  std::vector<EngineCounters> counters() const;
  /// Faults that nobody took while 4096 others waited for wait_fault. `fault(queue)` knows them still.
  std::uint64_t lost_faults() const noexcept;

 private:
  explicit SoftDevice(detail::SoftNode* node) noexcept : node_(node) {}
  detail::SoftNode* node_;
};

}  // namespace v0
}  // namespace sdma
