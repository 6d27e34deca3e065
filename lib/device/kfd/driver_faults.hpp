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
#include "../../core/await_change.hpp"
#include "../fault_log.hpp"
#include "kfd_driver.hpp"
#include "sdma/device/device.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class DriverFaults {
 public:
  std::optional<Diagnostic> watch(int fd, std::vector<std::uint32_t> gpu_ids) {
    fd_ = fd;
    gpu_ids_ = std::move(gpu_ids);
    for (auto [type, event] :
         {std::pair(kfd::kEventMemory, &memory_event_), std::pair(kfd::kEventHwException, &exception_event_)}) {
      kfd::CreateEvent a{.type = type, .auto_reset = 1};
      if (const int error = kfd::call(fd, kfd::Nr::create_event, a))
        return Diagnostic{.where = "/dev/kfd",
                          .message = std::string("faults cannot be watched: ") + std::strerror(error),
                          .hint = "the kernel's log (dmesg) may say more"};
      *event = a.event_id;
    }
    return {};
  }
  /// Before the descriptor is closed.
  void stop() noexcept {
    for (auto* const event : {&memory_event_, &exception_event_}) {
      kfd::EventId a{.event_id = std::exchange(*event, 0)};
      if (a.event_id != 0) (void)kfd::call(fd_, kfd::Nr::destroy_event, a, kfd::kIn);
    }
  }

  /// Takes over a fault that something else has reported.
  void keep(const Fault& f) noexcept {
    {
      const std::lock_guard lock(mutex_);  // a waiter has either seen the fault, or waits already
      if (const auto known = log_.of_gpu(f.gpu); known && known->kind == f.kind && known->va == f.va) return;
      log_.add(f);
    }
    came_.notify_all();
  }
  /// Reads the driver's new faults and keeps them. Errc::ok if there was one.
  Errc look(Deadline d = {}) noexcept {
    kfd::EventData events[2];
    events[0].event_id = memory_event_;
    events[1].event_id = exception_event_;
    const auto e = kfd::wait(fd_, events, d);
    if (e != Errc::ok) return e;
    const auto& m = events[0].memory;
    if (const auto g = gpu_of(m.gpu_id))
      keep({.kind = m.read_only != 0 ? FaultKind::read_only : FaultKind::unmapped,
            .access = m.read_only != 0 ? Access::write : Access::read_write,
            .anonymous = true,
            .gpu = *g,
            .engine = kUnknownEngine,
            .va = GpuVa{m.va}});
    const auto& x = events[1].exception;
    if (const auto g = gpu_of(x.gpu_id))
      keep({.kind = FaultKind::reset, .anonymous = true, .gpu = *g, .engine = kUnknownEngine});
    return Errc::ok;
  }
  Result<Fault> wait(Deadline d) noexcept {
    std::unique_lock lock(mutex_);
    for (bool looked = false;;) {
      if (const auto f = log_.wait(Deadline{})) return f;
      if (looked && d.passed()) return Errc::timed_out;
      looked = true;
      if (waiter_in_driver_) {
        await_change(came_, lock, d);
        continue;
      }
      waiter_in_driver_ = true;
      lock.unlock();
      const auto e = look(d);
      lock.lock();
      waiter_in_driver_ = false;
      came_.notify_all();  // one of the others takes over
      if (e == Errc::stopped) return e;
    }
  }
  std::optional<Fault> of_gpu(GpuId g) const noexcept { return log_.of_gpu(g); }
  std::optional<Fault> of_any_gpu() const noexcept { return log_.of_any_gpu(); }

 private:
  std::optional<GpuId> gpu_of(std::uint32_t gpu_id) const noexcept {
    const auto at = gpu_id == 0 ? gpu_ids_.end() : std::find(gpu_ids_.begin(), gpu_ids_.end(), gpu_id);
    if (at == gpu_ids_.end()) return {};
    return GpuId{static_cast<std::uint32_t>(at - gpu_ids_.begin())};
  }

  int fd_ = -1;
  std::vector<std::uint32_t> gpu_ids_;
  std::uint32_t memory_event_ = 0, exception_event_ = 0;
  FaultLog log_;
  std::mutex mutex_;
  std::condition_variable came_;
  bool waiter_in_driver_ = false;  // guarded by mutex_
};

}}}  // namespace sdma::v0_3::detail
