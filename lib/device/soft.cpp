// SPDX-License-Identifier: MIT
#include "sdma/device/soft.hpp"

#include "soft_node.hpp"

#include <fmt/format.h>

namespace sdma::inline v0 {

Result<std::unique_ptr<SoftDevice>, Diagnostic> SoftDevice::open(const SoftOptions& o) {
  const auto refused = [](std::string message, std::string hint) {
    return Diagnostic{.where = "software device", .message = std::move(message), .hint = std::move(hint)};
  };
  Topology t;
  if (o.topology) {
    t = *o.topology;
  } else {
    auto preset = mi300x(o.gpus);
    if (!preset) return preset.error();
    t = std::move(*preset);
  }
  if (t.gpus.empty() || t.gpus.size() > 64)
    return refused(fmt::format("a node cannot have {} GPUs", t.gpus.size()), "use 1 to 64");
  for (std::size_t i = 0; i < t.gpus.size(); ++i)
    if (t.gpus[i].engines() > 64)
      return refused(fmt::format("gpu{} has {} engines", i, t.gpus[i].engines()), "use at most 64");
  if (o.va_base.value % 4096 != 0)
    return refused(fmt::format("va_base {:#x} is not page-aligned", o.va_base.value), "use a multiple of 4096");
  if (o.scan_interval.count() < 0) return refused("scan_interval is negative", "use 0 to turn the scan off");
  return std::unique_ptr<SoftDevice>(new SoftDevice(new detail::SoftNode(o, std::move(t))));
}

SoftDevice::~SoftDevice() {
  // In the child of a fork the threads that would have to end do not exist, and locks that they held stay held.
  if (!node_->in_opening_process()) return;
  node_->stop();
  detail::SoftNode::drop(node_);
}

const Topology& SoftDevice::topology() const noexcept { return node_->topology(); }
Result<Memory, Diagnostic> SoftDevice::allocate(const MemoryRequest& r) { return node_->allocate(r); }
Result<SignalMemory, Diagnostic> SoftDevice::create_signal(const SignalRequest& r) { return node_->create_signal(r); }
Result<Event, Diagnostic> SoftDevice::create_event() { return node_->create_event(); }
Result<Queue, Diagnostic> SoftDevice::create_queue(const QueueRequest& r) { return node_->create_queue(r); }
Result<SharedHandle, Diagnostic> SoftDevice::share(const Memory& m) { return node_->share(m); }
Result<Memory, Diagnostic> SoftDevice::open_shared(const SharedHandle& h) { return node_->open_shared(h); }
std::optional<MemoryOwner> SoftDevice::origin(GpuVa va) const { return node_->origin(va); }
Signal SoftDevice::hooked(Signal s) const noexcept { return node_->hooked(s); }
Errc SoftDevice::wait_event(const Event& e, Deadline d) noexcept { return node_->wait_event(e.id(), d); }
Result<Fault> SoftDevice::wait_fault(Deadline d) noexcept { return node_->wait_fault(d); }
std::optional<Fault> SoftDevice::fault(const Queue& q) const noexcept { return node_->fault(q.id()); }
std::uint64_t SoftDevice::lost_faults() const noexcept { return node_->lost_faults(); }
Errc SoftDevice::flush_host_writes(GpuId g) const noexcept {
  return g.value < node_->topology().gpus.size() ? Errc::ok : Errc::bad_argument;
}
Errc SoftDevice::peek(GpuVa va, std::span<std::byte> out) const noexcept { return node_->peek(va, out); }
std::vector<EngineCounters> SoftDevice::counters() const { return node_->counters(); }

Result<Clock> SoftDevice::clock(GpuId g) const noexcept {
  if (g.value >= node_->topology().gpus.size()) return Errc::bad_argument;
  const auto now = Deadline::Clock::now();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  return Clock{.ticks = static_cast<std::uint64_t>(ns) / 10, .host = now};
}

}  // namespace sdma::inline v0
