// SPDX-License-Identifier: MIT
// KfdDevice in a library that was built without it: `open` always fails and says why.
#include "sdma/device/kfd.hpp"

namespace sdma::inline v0 {
namespace {

Diagnostic without() {
  return {.where = "KfdDevice",
          .message = "this library was built without devices of the kernel driver",
          .hint = "build it with -Dkfd=enabled (Linux)"};
}

}  // namespace

Result<std::unique_ptr<KfdDevice>, Diagnostic> KfdDevice::open(const KfdOptions&) { return without(); }
std::vector<Diagnostic> KfdDevice::missing(const KfdOptions&) { return {without()}; }
KfdDevice::~KfdDevice() = default;

const Topology& KfdDevice::topology() const noexcept {
  static const Topology none;
  return none;
}
Result<Memory, Diagnostic> KfdDevice::allocate(const MemoryRequest&) { return without(); }
Result<SignalMemory, Diagnostic> KfdDevice::create_signal(const SignalRequest&) { return without(); }
Result<Event, Diagnostic> KfdDevice::create_event() { return without(); }
Result<Queue, Diagnostic> KfdDevice::create_queue(const QueueRequest&) { return without(); }
Result<SharedHandle, Diagnostic> KfdDevice::share(const Memory&) { return without(); }
Result<Memory, Diagnostic> KfdDevice::open_shared(const SharedHandle&) { return without(); }
std::optional<MemoryOwner> KfdDevice::origin(GpuVa) const { return {}; }
Errc KfdDevice::wait_event(const Event&, Deadline) noexcept { return Errc::stopped; }
Result<Fault> KfdDevice::wait_fault(Deadline) noexcept { return Errc::stopped; }
std::optional<Fault> KfdDevice::fault(const Queue&) const noexcept { return {}; }
Errc KfdDevice::flush_host_writes(GpuId) const noexcept { return Errc::bad_argument; }
Errc KfdDevice::peek(GpuVa, std::span<std::byte>) const noexcept { return Errc::unmapped; }
Result<Clock> KfdDevice::clock(GpuId) const noexcept { return Errc::bad_argument; }
const std::vector<KfdGpu>& KfdDevice::gpus() const noexcept {
  static const std::vector<KfdGpu> none;
  return none;
}
std::string KfdDevice::version() const { return {}; }

}  // namespace sdma::inline v0
