// SPDX-License-Identifier: MIT
#pragma once
// A node in software: GPUs, engines, queues and memory. It executes the same ring bytes through the same ring and
// doorbell protocol as hardware, and can order memory as weakly as hardware may.
//
//   auto device = SoftDevice::open({.gpus = 2, .ordering = Ordering::adversarial, .seed = 7});
//   if (!device) return fail(to_string(device.error()));
//   Device& d = **device;                                   // from here on like any other: see device/device.hpp
//
//   Ring -> wptr, doorbell -> call --->  engine thread: reads up to the doorbell, never past it
//                                        parks when idle (no CPU); retries a pending poll at growing intervals
//   Signal::sleep  <---  woken after a store by an engine; Signal::set and add (wake) wake engines that poll the word
//
// Each engine that has a queue has one thread, which serves the engine's queues in turn. In adversarial mode, a pending
// poll may keep the engine from its other queues. A queue may sleep at its doorbell or between two packets, and a host
// thread after it has rung a doorbell or stored to a signal; each sleeps until the rest of the node is quiet, and for
// at most 10 ms (docs/engine.md). After its last packet an engine spins for some microseconds, then parks.
// RingMemory::on_doorbell wakes it. A program may also store the doorbell itself and not call the hook (a raw
// protocol). For such programs, one thread checks all doorbells at least every `scan_interval`. If it finds work for an
// engine, that engine checks its own doorbells more often for a while. An engine sees a new value of a polled word at
// once if an engine or Signal::set stored it, and within a millisecond if a program stored it by its address.
//
// Memory is real: GPU memory and host memory are pages of this process, and a VA is the host's address unless `va_base`
// is set. An access past the end of an allocation faults: an unmapped gap follows each allocation. If the mask of a
// request excludes a GPU, an access to that memory by an engine of that GPU faults too. Creating or destroying a queue
// clears the doorbells of its GPU, as on hardware: engines then take their positions from wptr.
//
// A fault stops its queue and no other; wait_fault reports it. engine/fault.hpp says what hardware would do instead. It
// is safe to destroy queues, memory or the device with work in flight: after a queue's destructor has returned, the
// engine no longer touches the ring or the memory that its packets refer to. Freed memory has no address for engines
// any more; if one is in the middle of a copy there, its pages go with a later call of allocate or free, which none
// waits for. A queue's destructor waits for the packets that its engine is executing, and for nothing that these poll.
// Handles may outlive the device, but then nothing executes.
//
// After a fork, the child has memory and handles but no engines: creating anything is an error, nothing executes,
// destructors leave everything to the parent, and waits end at their deadlines. Open a new device in the child.
//
// Thread-safe, as Device is. Errors: those of Device, and Diagnostics from open.
#include "sdma/device/device.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/trace/trace.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 {

class SoftDevice;
namespace detail {
class SoftNode;
SoftNode& node_of(const SoftDevice&) noexcept;
}  // namespace detail

/// How a software node is made.
struct SoftOptions {
  std::uint32_t gpus = 8;                ///< MI300X, 1 to 8
  std::optional<Topology> topology{};    ///< another node: up to 64 GPUs; `gpus` is then ignored
  Ordering ordering = Ordering::strict;  ///< the order in which packets take effect (docs/engine.md)
  std::uint64_t seed =
      0;  ///< for rocr and adversarial: makes choices repeatable, but not the timing of threads (docs/engine.md)
  GpuVa va_base{};           ///< VAs count up from here and differ from host addresses; 0: they are the same
  trace::Recorder* trace{};  ///< not owned; must outlive the device and its queues. Null: no trace
  std::chrono::milliseconds scan_interval{50};  ///< the longest time until a doorbell without `wake` is seen; 0: never
};

/// What one engine has done since the device was opened, including queues that no longer exist.
struct EngineCounters {
  GpuId gpu{};                       ///< the GPU that has the engine
  EngineId engine{};                 ///< its number on the GPU
  std::uint64_t packets{}, bytes{};  ///< bytes: those that copies, fills and writes have stored
  std::uint64_t doorbells{};         ///< how many the engine saw; it may see several as one
};

class SoftDevice final : public ForwardingDevice {
 public:
  /// Makes a node. Errors: it would have no GPU or too many, or a GPU with more than 64 engines; `va_base` is not a
  /// multiple of 4096; `scan_interval` is negative.
  static Result<std::unique_ptr<SoftDevice>, Diagnostic> open(const SoftOptions& = {});
  ~SoftDevice() override;

  /// The counters of all engines that have or had a queue, by GPU and engine.
  std::vector<EngineCounters> counters() const;
  /// How many faults were dropped because 4096 others had not been fetched with wait_fault yet. `fault(queue)` still
  /// reports them.
  std::uint64_t lost_faults() const noexcept;

 private:
  explicit SoftDevice(detail::SoftNode*) noexcept;
  friend detail::SoftNode& detail::node_of(const SoftDevice&) noexcept;
  detail::SoftNode* node_;
};

}}  // namespace sdma::v0_3
