// SPDX-License-Identifier: MIT
#include "node.hpp"

namespace sdma::inline v0 {

Result<std::unique_ptr<RocrDevice>, Diagnostic> RocrDevice::open(const RocrOptions& o) {
  const auto n = detail::RocrNode::open(o);
  if (!n) return n.error();
  return std::unique_ptr<RocrDevice>(new RocrDevice(*n));
}

std::vector<Diagnostic> RocrDevice::missing(const RocrOptions& o) {
  auto p = detail::probe(o);
  if (p.hsa) (void)p.hsa->shut_down();
  return p.missing;
}

RocrDevice::~RocrDevice() {
  if (!node_->in_opening_process()) return;  // it belongs to the parent
  node_->stop();
  detail::RocrNode::drop(node_);
}

const Topology& RocrDevice::topology() const noexcept { return node_->topology(); }
Result<Memory, Diagnostic> RocrDevice::allocate(const MemoryRequest& r) { return node_->allocate(r); }
Result<SignalMemory, Diagnostic> RocrDevice::create_signal(const SignalRequest& r) { return node_->create_signal(r); }
Result<Event, Diagnostic> RocrDevice::create_event() { return node_->create_event(); }
Result<Queue, Diagnostic> RocrDevice::create_queue(const QueueRequest& r) { return node_->create_queue(r); }
Result<SharedHandle, Diagnostic> RocrDevice::share(const Memory& m) { return node_->share(m); }
Result<Memory, Diagnostic> RocrDevice::open_shared(const SharedHandle& h) { return node_->open_shared(h); }
std::optional<MemoryOwner> RocrDevice::origin(GpuVa va) const { return node_->origin(va); }
Errc RocrDevice::wait_event(const Event& e, Deadline d) noexcept { return node_->wait_event(e.id(), d); }
Result<Fault> RocrDevice::wait_fault(Deadline d) noexcept { return node_->wait_fault(d); }
std::optional<Fault> RocrDevice::fault(const Queue& q) const noexcept { return node_->fault(q); }
Errc RocrDevice::flush_host_writes(GpuId g) const noexcept { return node_->flush_host_writes(g); }
Errc RocrDevice::peek(GpuVa va, std::span<std::byte> out) const noexcept { return node_->peek(va, out); }
Result<Clock> RocrDevice::clock(GpuId g) const noexcept { return node_->clock(g); }
Result<Memory, Diagnostic> RocrDevice::adopt(void* p, std::uint64_t bytes, std::uint64_t gpus) {
  return node_->adopt(p, bytes, gpus);
}
RocrQueues RocrDevice::queues() const noexcept { return node_->queues(); }
std::string RocrDevice::version() const { return node_->version(); }

}  // namespace sdma::inline v0
