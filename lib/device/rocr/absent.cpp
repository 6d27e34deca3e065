// SPDX-License-Identifier: MIT
// RocrDevice in a library that was built without it: `open` always fails and says why.
#include "sdma/device/rocr.hpp"

namespace sdma::inline v0 {
namespace {

Diagnostic without() {
  return {.where = "RocrDevice",
          .message = "this library was built without devices of the kernel driver",
          .hint = "build it with -Dkfd=enabled (Linux)"};
}

}  // namespace

Result<std::unique_ptr<RocrDevice>, Diagnostic> RocrDevice::open(const RocrOptions&) { return without(); }
std::vector<Diagnostic> RocrDevice::missing(const RocrOptions&) { return {without()}; }
RocrDevice::~RocrDevice() = default;

const Topology& RocrDevice::topology() const noexcept {
  static const Topology none;
  return none;
}
Result<Memory, Diagnostic> RocrDevice::allocate(const MemoryRequest&) { return without(); }
Result<SignalMemory, Diagnostic> RocrDevice::create_signal(const SignalRequest&) { return without(); }
Result<Event, Diagnostic> RocrDevice::create_event() { return without(); }
Result<Queue, Diagnostic> RocrDevice::create_queue(const QueueRequest&) { return without(); }
Result<SharedHandle, Diagnostic> RocrDevice::share(const Memory&) { return without(); }
Result<Memory, Diagnostic> RocrDevice::open_shared(const SharedHandle&) { return without(); }
std::optional<MemoryOwner> RocrDevice::origin(GpuVa) const { return {}; }
Errc RocrDevice::wait_event(const Event&, Deadline) noexcept { return Errc::stopped; }
Result<Fault> RocrDevice::wait_fault(Deadline) noexcept { return Errc::stopped; }
std::optional<Fault> RocrDevice::fault(const Queue&) const noexcept { return {}; }
Errc RocrDevice::flush_host_writes(GpuId) const noexcept { return Errc::bad_argument; }
Errc RocrDevice::peek(GpuVa, std::span<std::byte>) const noexcept { return Errc::unmapped; }
Result<Clock> RocrDevice::clock(GpuId) const noexcept { return Errc::bad_argument; }
Result<Memory, Diagnostic> RocrDevice::adopt(void*, std::uint64_t, std::uint64_t) { return without(); }
RocrQueues RocrDevice::queues() const noexcept { return {}; }
std::string RocrDevice::version() const { return {}; }

}  // namespace sdma::inline v0
