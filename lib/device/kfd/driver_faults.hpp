// SPDX-License-Identifier: MIT
#pragma once
// The faults that the kernel driver reports of a process's queues: VM faults and resets, each kept once.
//
//   faults.watch(fd, {0xd2e, 0xe51})          // the driver's ids of the GPUs; a Diagnostic if it creates no events
//   faults.wait(deadline)                     // the oldest that no call has returned yet
//   faults.look(); faults.of_gpu(GpuId{1})    // the first of that GPU that is known by now
//
// Any number of descriptors and libraries of a process can watch: the driver signals the events of all of them. One
// waiting thread waits in the driver for all others, and wakes them. Another source (ROCr) may report the same fault:
// the same page of the same GPU counts once.
//
// Any thread. Internal to the library. Errors: timed_out; stopped if the driver no longer knows the events.
#include "../fault_log.hpp"
#include "driver.hpp"
#include "sdma/device/device.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

namespace sdma::inline v0::detail {

class DriverFaults {
 public:
  std::optional<Diagnostic> watch(int fd, std::vector<std::uint32_t> gpu_ids);
  /// Before the descriptor is closed.
  void stop() noexcept;

  /// Takes over a fault that something else has reported.
  void keep(const Fault&) noexcept;
  /// Reads the driver's new faults and keeps them. Errc::ok if there was one.
  Errc look(Deadline = {}) noexcept;
  Result<Fault> wait(Deadline) noexcept;
  std::optional<Fault> of_gpu(GpuId g) const noexcept { return log_.of_gpu(g); }
  std::optional<Fault> of_any_gpu() const noexcept { return log_.of_any_gpu(); }

 private:
  std::optional<GpuId> gpu_of(std::uint32_t gpu_id) const noexcept;

  int fd_ = -1;
  std::vector<std::uint32_t> gpu_ids_;
  std::uint32_t memory_event_ = 0, exception_event_ = 0;
  FaultLog log_;
  std::mutex mutex_;
  std::condition_variable came_;
  bool waiter_in_driver_ = false;  // guarded by mutex_
};

}  // namespace sdma::inline v0::detail
