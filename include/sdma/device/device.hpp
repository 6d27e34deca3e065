// SPDX-License-Identifier: MIT
#pragma once
// The GPUs of a node, provided by software (device/soft.hpp), by the kernel driver (device/kfd.hpp), by ROCr
// (device/rocr.hpp) or by CUDA (device/cuda.hpp).
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
// A fault stops queues. `wait_fault` reports each fault once. `fault(queue)` says at any time whether the completions
// of a queue can be trusted: call it after every wait, whether the wait succeeded or not. A producer of a stopped queue
// gets no_space once the ring is full.
//
// A Device is the control path only: copies, publishing and waits for completion do not pass through it. Producers
// write rings directly, programs access memory through pointers, and a completion is a word in memory. So nothing here
// needs to be fast, and everything may be virtual.
//
// After a fork, the child has neither the memory nor the queues of a device: every call in the child is an error, and
// destructors leave everything to the parent (soft.hpp says what differs in software).
//
// Thread-safe: any thread may call anything. Creating or destroying a queue unmaps all queues of its GPU for a moment:
// a doorbell that is rung meanwhile is lost, and the engine takes its position from wptr. So a Ring always stores wptr
// before it rings.
// Errors: a Diagnostic says what, where, and what to do; the `wait_...` functions return Errc::timed_out, and `peek`
// returns Errc::unmapped.
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
#include <string>

namespace sdma { inline namespace v0_3 {

/// How the engine of a new queue is chosen.
enum class EnginePick : std::uint8_t {
  exact,     ///< QueueRequest::engine and no other
  any_host,  ///< any engine that faces the host; the driver chooses
  any_xgmi   ///< any engine that faces other GPUs; the driver chooses
};
/// The value of Queue::engine() if the driver chose the engine and does not say which.
inline constexpr EngineId kUnknownEngine{~std::uint32_t{0}};

/// A request for a queue.
struct QueueRequest {
  GpuId gpu{};                           ///< the GPU whose engine serves the queue
  EngineId engine{};                     ///< which engine; used only if `pick` is `exact`
  EnginePick pick = EnginePick::exact;   ///< how the engine is chosen
  std::uint64_t ring_bytes = 64 * 1024;  ///< a power of two, at least 1 KiB
  int priority = 0;                      ///< -3 to 3; may be ignored
  bool watch_wptr = false;               ///< no doorbell: RingMemory::doorbell is null and the engine watches wptr
  /// Kernels write the ring (sync/device.hpp). The CUDA device then pins it, and a thread looks for doorbells without
  /// a pause, in place of RingMemory::on_doorbell. Other devices have nothing to do for it.
  bool for_kernels = false;
  std::string name{};  ///< what recordings call the queue; empty: its number
};

/// A GPU's clock (the one that TIMESTAMP stores) and the host's clock, read at the same moment.
struct Clock {
  std::uint64_t ticks{};               ///< what the GPU's clock shows
  Deadline::Clock::time_point host{};  ///< what the host's clock shows at that moment
  std::uint64_t hz{};                  ///< the rate of the GPU's clock, in ticks per second; never 0
  /// The host's time at `tick`, which should be close to `ticks`.
  Deadline::Clock::time_point at(std::uint64_t tick) const noexcept {
    const auto difference = static_cast<std::int64_t>(tick - ticks);
    return host + std::chrono::nanoseconds(difference * static_cast<std::int64_t>(1'000'000'000 / hz));
  }
};

class Device {
 public:
  /// Stops all engines; remaining handles stay valid and still return what they hold. Waits until what the engines are
  /// executing has ended and, if memory was shared, at most a second for a process that was about to open some.
  virtual ~Device();

  /// The GPUs, engines and links of the node.
  virtual const Topology& topology() const noexcept = 0;

  // Each of these returns a handle, or a Diagnostic if the request is
  // invalid or cannot be served.
  /// Allocates memory. Errors: there is no such GPU; the size is 0;
  /// the alignment is not a power of two up to 2^40; out of memory.
  virtual Result<Memory, Diagnostic> allocate(const MemoryRequest&) = 0;
  virtual Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&) = 0;
  /// A signal in the host's memory that begins at 0.
  Result<SignalMemory, Diagnostic> create_signal() { return create_signal(SignalRequest{}); }
  /// An interrupt with its mailbox. Errors: the device or the driver has no event number left; out of memory.
  virtual Result<Event, Diagnostic> create_event() = 0;
  /// A queue with its ring. Errors: there is no such GPU or engine, or the engine is dead; the GPU has no live engine
  /// of the requested kind; `ring_bytes` or `priority` is out of range; all queues of the engine are in use; out of
  /// memory; the driver refuses the queue; a thread of the device cannot start.
  virtual Result<Queue, Diagnostic> create_queue(const QueueRequest&) = 0;

  // Memory of several processes: device/memory.hpp.
  /// A handle by which other processes open this memory; the same one in each call. Errors: this device cannot share;
  /// the memory was not allocated by it, or not as `shareable`; no descriptor is left; the thread that serves handles
  /// cannot start.
  virtual Result<SharedHandle, Diagnostic> share(const Memory&);
  /// Opens memory that a device of the same kind shares. Errors: this device cannot share; the handle is of another
  /// kind or version; its owner has ended, has given the memory back, belongs to another user or does not answer within
  /// ten seconds; the memory is of a GPU that this device lacks; no descriptor is left; out of memory.
  virtual Result<Memory, Diagnostic> open_shared(const SharedHandle&);
  /// A DMABUF of this memory. Errors: this device makes none; the memory was not allocated by it; of the software
  /// device: it is not `shareable`; the driver or its library is too old; no descriptor is left.
  virtual Result<Dmabuf, Diagnostic> export_dmabuf(const Memory&);
  /// Memory of a DMABUF of any driver that this device's driver takes. Errors: this device takes none; there is no such
  /// GPU; the descriptor is of something else, or shorter; the driver refuses it.
  virtual Result<Memory, Diagnostic> import_dmabuf(const DmabufRequest&);
  /// The name of this memory in the IPC of ROCr or libhsakmt. Errors: this device has none; the memory was not
  /// allocated by it; the driver refuses it.
  virtual Result<IpcHandle, Diagnostic> export_ipc(const Memory&);
  /// Memory that another process has named so. `where`: whose it is; `gpus`: those that may access it. Errors: this
  /// device has none; there is no such GPU; the driver refuses the handle.
  virtual Result<Memory, Diagnostic> import_ipc(const IpcHandle&, std::optional<GpuId> where = {},
                                                std::uint64_t gpus = ~0ull);
  /// The process that shares the memory at this address; nullopt, unless `open_shared` has opened it.
  virtual std::optional<MemoryOwner> origin(GpuVa) const;
  /// A signal of a word of this device's memory, which keeps the word. Errors: the offset is not a multiple of 8, or
  /// there are no 8 bytes at it; the host cannot reach the memory.
  Result<Signal, Diagnostic> signal_at(const Memory&, std::uint64_t offset = 0) const;

  /// Waits for the next interrupt of `e`, which may have arrived before the call. timed_out: none arrived.
  [[nodiscard]] virtual Errc wait_event(const Event& e, Deadline) noexcept = 0;
  /// Waits for a fault, and returns the oldest that no call has returned yet. timed_out: there was none.
  virtual Result<Fault> wait_fault(Deadline) noexcept = 0;
  /// The fault that makes the completions of this queue untrustworthy; nullopt: no such fault is known.
  virtual std::optional<Fault> fault(const Queue&) const noexcept = 0;
  /// Flushes the path between the host and a GPU's memory. Call it between this thread's stores to that memory and the
  /// doorbell, so that engines see the stores. Call it also between a completion and this thread's loads from that
  /// memory, so that the loads see what engines stored. bad_argument: there is no such GPU.
  [[nodiscard]] virtual Errc flush_host_writes(GpuId) const noexcept = 0;
  /// Copies the bytes at an address as they are now, for reports. unmapped: they are not all mapped; the call never
  /// crashes. Takes a lock.
  [[nodiscard]] virtual Errc peek(GpuVa, std::span<std::byte>) const noexcept = 0;
  /// Reads the clocks of this GPU and of the host. bad_argument: there is no such GPU; unknown: the driver does not
  /// give the rate of the GPU's clock, so ticks have no time.
  virtual Result<Clock> clock(GpuId) const noexcept = 0;
  /// May a thread of the host stand in for a compute kernel (schedule/run.hpp)? Only in software, where nothing else
  /// would start one, and all memory is the host's.
  virtual bool kernels_stand_in() const noexcept { return false; }
  /// Can `allow` take memory from engines while they run? Only in software: a driver frees memory, and its address.
  virtual bool takes_memory() const noexcept { return false; }
  /// From now on, only these GPUs may access the memory that was allocated at this address: bit g is GPU g, and 0 is
  /// what a free leaves. The bytes stay where they are, and the host keeps its access. Waits for accesses that have
  /// begun.
  /// unmapped: no memory was allocated there; timed_out: an engine may still use it; no_space: nothing has changed;
  /// bad_argument: this device cannot (`takes_memory`).
  [[nodiscard]] virtual Errc allow(GpuVa, std::uint64_t gpus, Deadline) noexcept;
  /// Does the rptr of a ring say what an engine has read? A device that translates packets reads them itself.
  virtual bool rptr_is_of_engines() const noexcept { return true; }

 protected:
  Device() = default;
  /// Adds this device's hooks to a signal.
  virtual Signal hooked(Signal s) const noexcept { return s; }
  friend class ForwardingDevice;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
};

/// A device that passes each call on to another one: a base for those that change some of them. The other device has
/// to live as long.
class ForwardingDevice : public Device {
 public:
  ~ForwardingDevice() override;

  const Topology& topology() const noexcept override { return to_.topology(); }
  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) override { return to_.allocate(r); }
  using Device::create_signal;  ///< the overload without a request
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override { return to_.create_signal(r); }
  Result<Event, Diagnostic> create_event() override { return to_.create_event(); }
  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) override { return to_.create_queue(r); }
  Result<SharedHandle, Diagnostic> share(const Memory& m) override { return to_.share(m); }
  Result<Memory, Diagnostic> open_shared(const SharedHandle& h) override { return to_.open_shared(h); }
  Result<Dmabuf, Diagnostic> export_dmabuf(const Memory& m) override { return to_.export_dmabuf(m); }
  Result<Memory, Diagnostic> import_dmabuf(const DmabufRequest& r) override { return to_.import_dmabuf(r); }
  Result<IpcHandle, Diagnostic> export_ipc(const Memory& m) override { return to_.export_ipc(m); }
  Result<Memory, Diagnostic> import_ipc(const IpcHandle& h, std::optional<GpuId> where = {},
                                        std::uint64_t gpus = ~0ull) override {
    return to_.import_ipc(h, where, gpus);
  }
  std::optional<MemoryOwner> origin(GpuVa va) const override { return to_.origin(va); }
  [[nodiscard]] Errc wait_event(const Event& e, Deadline d) noexcept override { return to_.wait_event(e, d); }
  Result<Fault> wait_fault(Deadline d) noexcept override { return to_.wait_fault(d); }
  std::optional<Fault> fault(const Queue& q) const noexcept override { return to_.fault(q); }
  [[nodiscard]] Errc flush_host_writes(GpuId g) const noexcept override { return to_.flush_host_writes(g); }
  [[nodiscard]] Errc peek(GpuVa va, std::span<std::byte> to) const noexcept override { return to_.peek(va, to); }
  Result<Clock> clock(GpuId g) const noexcept override { return to_.clock(g); }
  bool kernels_stand_in() const noexcept override { return to_.kernels_stand_in(); }
  bool takes_memory() const noexcept override { return to_.takes_memory(); }
  [[nodiscard]] Errc allow(GpuVa va, std::uint64_t gpus, Deadline d) noexcept override {
    return to_.allow(va, gpus, d);
  }
  bool rptr_is_of_engines() const noexcept override { return to_.rptr_is_of_engines(); }

 protected:
  explicit ForwardingDevice(Device& to) noexcept : to_(to) {}
  Signal hooked(Signal s) const noexcept override { return to_.hooked(s); }

 private:
  Device& to_;
};

}}  // namespace sdma::v0_3
