#pragma once
// Compute queues without shaders: AQL packets that synchronise are executed, and a kernel dispatch is refused.
//
//   barrier-and, barrier-or    wait for their signals, then complete
//   barrier-value (AMD)        waits for a value, then completes
//   PM4 buffer (AMD)           completes: it is cache maintenance, and this node has no caches
//   ROCr's own copies, fills   are executed: see blit.hpp
//   other kernel dispatches,   never complete: the queue stops with an error that the runtime reports, and a message on
//   agent dispatches           stderr names the dispatch
//
// Signals are completed with the steps of a command processor: write timestamps, decrement the value, write the
// mailbox, raise the interrupt. All addresses are the GPU's. The GPU's server serves the queue; see hw_queue.hpp.
#include "hw_queue.hpp"

namespace sdma::emulator {

class AqlQueue final : public HwQueue {
 public:
  /// `rptr_va`: the address of read_dispatch_id, from which the other fields of the queue are found.
  explicit AqlQueue(ComputeConfig);
  Progress step() noexcept override;

 private:
  void rung(std::uint64_t) noexcept override {}
  Progress packet(std::byte* at) noexcept;
  bool signal_is_zero(std::uint64_t handle, bool* mapped) noexcept;
  void complete(std::uint64_t handle, std::uint64_t began) noexcept;
  template <class Change> void update(std::byte* signal, Change change) noexcept;
  Progress refuse(const std::byte* at, const char* what) noexcept;
  Progress fault(std::uint64_t va) noexcept;

  ComputeConfig c_;
  std::uint64_t began_ = 0, moved_ = 0;  ///< of the present packet: ticks; bytes of a blit that is not finished
  std::uint64_t read_;
  bool stopped_ = false;
};

}  // namespace sdma::emulator
