// SPDX-License-Identifier: MIT
#pragma once
// Compute queues without shaders: AQL packets that synchronise are
// executed, and a kernel dispatch is refused unless its effect is known.
//
//   barrier-and, barrier-or    wait for their signals, then complete
//   barrier-value (AMD)        waits for a value, then completes
//   PM4 buffer (AMD)           its packets are executed: see pm4.hpp
//   ROCr's own copies, fills   are executed: see blit.hpp
//   HIP's own copies, fills    are executed: see hip_kernels.hpp
//   other kernel dispatches    never complete: the queue stops with an error that the runtime reports, and a message on
//                              stderr names the dispatch. With --kernels=skip
//                              they complete without effect: see skipped.hpp
//   agent dispatches,          stop the queue
//   whatever else is unknown
//
// A packet is complete before the next one begins, so barrier bits and fence scopes need nothing more. A completed
// packet first leaves the ring (its slot becomes invalid, then read_dispatch_id passes it), then its signal is
// completed with the steps of a command processor: write timestamps, decrement the value, write the mailbox, raise the
// interrupt. A program that wakes thus finds the packet consumed. All addresses are the GPU's. The GPU's server serves
// the queue; see hw_queue.hpp.
#include "code_object.hpp"
#include "effect.hpp"
#include "pm4.hpp"

#include <optional>

namespace sdma::emulator {

class AqlQueue final : public HwQueue {
 public:
  /// `rptr_va`: the address of read_dispatch_id, from which the other fields of the queue are found.
  explicit AqlQueue(ComputeConfig);
  Progress step() noexcept override;

 private:
  struct Error;
  enum class Done : std::uint8_t { complete, more, waits, not_written, stopped };

  void rung(std::uint64_t) noexcept override {}
  Done packet(std::byte* at) noexcept;
  Done barrier(const std::byte* at, bool all) noexcept;
  Done barrier_value(const std::byte* at) noexcept;
  Done pm4_buffer(const std::byte* at) noexcept;
  Done kernel(const std::byte* at) noexcept;
  std::byte* signal(std::uint64_t handle, Access) noexcept;
  void complete(std::byte* signal) noexcept;
  template <class Change> void update(std::byte* signal, Change change) noexcept;
  Done refuse(const char* what, const char* why) noexcept;
  Done refuse_kernel(const std::byte* at, const KernelName&, const char* why) noexcept;
  Done stop(const Error&) noexcept;
  void report(std::uint64_t exception) noexcept;
  Done fault(std::uint64_t va) noexcept;

  ComputeConfig c_;
  Pm4 pm4_{c_};
  std::optional<Effect> effect_{};  ///< of the present packet, which has begun
  std::uint64_t began_ = 0;         ///< ticks
  std::uint64_t read_;
  bool begun_ = false, stopped_ = false;
};

}  // namespace sdma::emulator
