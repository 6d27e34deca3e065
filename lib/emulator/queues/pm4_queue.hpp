// SPDX-License-Identifier: MIT
#pragma once
// A compute queue of PM4 packets: the ring, and when rptr and interrupts become visible. See pm4.hpp for the packets.
//
//   order   a packet's data, then rptr, then its interrupt: a program that wakes finds rptr after the packet
//   buffer  rptr passes the packet that jumps to a buffer when the whole buffer is complete. An interrupt in its middle
//           therefore comes before rptr changes.
//
// A packet that is refused stops the queue and raises the process's HW_EXCEPTION events. Positions count dwords. As on
// hardware, rptr is a 32-bit position within the ring. The GPU's server serves the queue; see hw_queue.hpp.
#include "../trace.hpp"
#include "pm4.hpp"

namespace sdma::emulator {

class Pm4Queue final : public HwQueue {
 public:
  explicit Pm4Queue(ComputeConfig c) : HwQueue(c.id, kComputeEngine, c.doorbell, c.wptr), c_(std::move(c)) {}
  Progress step() noexcept override {
    if (stopped_) return Progress::stopped;
    const auto pending = (written_ - read_) % c_.ring.size();
    if (pending == 0) return Progress::idle;
    const AddressSpace::Reader::Section section(*c_.reader);
    const auto r = pm4_.step({c_.ring, read_ % c_.ring.size(), pending}, read_ * 4);
    if (r.dwords != 0) {
      read_ += r.dwords;
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(c_.rptr), static_cast<std::uint32_t>(read_ % c_.ring.size()),
                       __ATOMIC_RELEASE);
    }
    pm4_.notify();
    stopped_ = r.progress == Progress::stopped;
    if (stopped_ && !pm4_.faulted()) c_.events->hw_exception();
    return r.progress;
  }

 private:
  void rung(std::uint64_t position) noexcept override { written_ = position; }

  ComputeConfig c_;
  Pm4 pm4_{c_};
  std::uint64_t read_ = 0, written_ = 0;
  bool stopped_ = false;
};

}  // namespace sdma::emulator
