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
#include "pm4.hpp"

namespace sdma::emulator {

class Pm4Queue final : public HwQueue {
 public:
  explicit Pm4Queue(ComputeConfig);
  Progress step() noexcept override;

 private:
  void rung(std::uint64_t position) noexcept override { written_ = position; }

  ComputeConfig c_;
  Pm4 pm4_{c_};
  std::uint64_t read_ = 0, written_ = 0;
  bool stopped_ = false;
};

}  // namespace sdma::emulator
