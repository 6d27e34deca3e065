// SPDX-License-Identifier: MIT
#pragma once
// A device as Python holds it, and memory of it. Python decides when
// objects die, in any order and perhaps in a child after a fork:
//
//   Opened        the device; memory and runs keep it open. In a child,
//                 its threads do not exist, so it is left as it is
//   Block         memory that NumPy arrays are views of; it stays while an array is
//   Stoppable     the device during one run, which Ctrl-C ends: its next wait_fault reports a fault
//
// One thread at a time uses an Opened: `Use` raises an error for the second, for another process, and after `close`.
// The lock of the interpreter is held, except by Stoppable.
#include "long_call.hpp"
#include "sdma/device/open.hpp"

#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sdma::python {

struct Block;

struct Opened {
  Opened(DeviceKind k, std::unique_ptr<Device> d) : kind(k), device(std::move(d)) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (::getpid() != owner) static_cast<void>(device.release());
  }

  const DeviceKind kind;
  const pid_t owner = ::getpid();
  bool closed = false, used = false;
  std::vector<std::weak_ptr<Block>> blocks{};
  std::unique_ptr<Device> device;
};

struct Block {
  Block(std::shared_ptr<Opened> o, std::optional<GpuId> w, Memory m)
      : opened(std::move(o)), where(w), memory(std::move(m)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    // In a child after a fork, the memory belongs to the parent.
    if (::getpid() != opened->owner) static_cast<void>(new Memory(std::move(memory)));
  }
  std::shared_ptr<Opened> opened;
  std::optional<GpuId> where;  ///< nothing: the host
  Memory memory;
};

/// The right of this thread to use a device.
class Use {
 public:
  explicit Use(const std::shared_ptr<Opened>&);
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { opened_->used = false; }

 private:
  std::shared_ptr<Opened> opened_;
};

class Stoppable final : public Device {
 public:
  Stoppable(Device& d, const Stop& stop) noexcept : device_(d), stop_(stop) {}

  const Topology& topology() const noexcept override { return device_.topology(); }
  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) override { return device_.allocate(r); }
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override { return device_.create_signal(r); }
  Result<Event, Diagnostic> create_event() override { return device_.create_event(); }
  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) override { return device_.create_queue(r); }
  Errc wait_event(const Event& e, Deadline d) noexcept override { return device_.wait_event(e, d); }
  Result<Fault> wait_fault(Deadline d) noexcept override {
    // One fault for each call that asks: each host thread of a run has to see one, and stops asking at the next.
    thread_local bool given = false;
    given = stop_ && !given;
    if (given) return Fault{};
    return device_.wait_fault(d);
  }
  std::optional<Fault> fault(const Queue& q) const noexcept override { return device_.fault(q); }
  Errc flush_host_writes(GpuId g) const noexcept override { return device_.flush_host_writes(g); }
  Errc peek(GpuVa va, std::span<std::byte> to) const noexcept override { return device_.peek(va, to); }
  Result<Clock> clock(GpuId g) const noexcept override { return device_.clock(g); }
  bool kernels_stand_in() const noexcept override { return device_.kernels_stand_in(); }

 private:
  Device& device_;
  const Stop& stop_;
};

}  // namespace sdma::python
