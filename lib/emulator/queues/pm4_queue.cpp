// SPDX-License-Identifier: MIT
#include "pm4_queue.hpp"

#include "../trace.hpp"

namespace sdma::emulator {

Pm4Queue::Pm4Queue(ComputeConfig c) : HwQueue(c.id, kComputeEngine, c.doorbell, c.wptr), c_(std::move(c)) {}

Progress Pm4Queue::step() noexcept {
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

}  // namespace sdma::emulator
