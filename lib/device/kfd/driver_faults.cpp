// SPDX-License-Identifier: MIT
#include "driver_faults.hpp"

#include <algorithm>
#include <cstring>

namespace sdma::inline v0::detail {

std::optional<Diagnostic> DriverFaults::watch(int fd, std::vector<std::uint32_t> gpu_ids) {
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

void DriverFaults::stop() noexcept {
  for (auto* const event : {&memory_event_, &exception_event_}) {
    kfd::EventId a{.event_id = std::exchange(*event, 0)};
    if (a.event_id != 0) (void)kfd::call(fd_, kfd::Nr::destroy_event, a, kfd::kIn);
  }
}

std::optional<GpuId> DriverFaults::gpu_of(std::uint32_t gpu_id) const noexcept {
  const auto at = gpu_id == 0 ? gpu_ids_.end() : std::find(gpu_ids_.begin(), gpu_ids_.end(), gpu_id);
  if (at == gpu_ids_.end()) return {};
  return GpuId{static_cast<std::uint32_t>(at - gpu_ids_.begin())};
}

void DriverFaults::keep(const Fault& f) noexcept {
  {
    const std::lock_guard lock(mutex_);  // a waiter has either seen the fault, or waits already
    if (const auto known = log_.of_gpu(f.gpu); known && known->kind == f.kind && known->va == f.va) return;
    log_.add(f);
  }
  came_.notify_all();
}

Errc DriverFaults::look(Deadline d) noexcept {
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

Result<Fault> DriverFaults::wait(Deadline d) noexcept {
  std::unique_lock lock(mutex_);
  for (bool looked = false;;) {
    if (const auto f = log_.wait(Deadline{})) return f;
    if (looked && d.passed()) return Errc::timed_out;
    looked = true;
    if (waiter_in_driver_) {
      came_.wait_until(lock, std::min(d.at, Deadline::in(std::chrono::hours(1)).at));
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

}  // namespace sdma::inline v0::detail
