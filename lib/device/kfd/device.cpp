// SPDX-License-Identifier: MIT
#include "sdma/device/kfd.hpp"

#include "node.hpp"

#include <fmt/format.h>

namespace sdma::inline v0 {

Result<std::unique_ptr<KfdDevice>, Diagnostic> KfdDevice::open(const KfdOptions& o) {
  auto n = detail::KfdNode::open(o);
  if (!n) return n.error();
  return std::unique_ptr<KfdDevice>(new KfdDevice(*n));
}

std::vector<Diagnostic> KfdDevice::missing(const KfdOptions& o) {
  auto out = detail::probe(o).missing;
  if (!out.empty()) return out;
  if (auto n = detail::KfdNode::open(o)) detail::KfdNode::drop(*n);
  else out.push_back(n.error());
  return out;
}

KfdDevice::~KfdDevice() {
  if (!node_->in_opening_process()) return;  // it belongs to the parent
  node_->stop();
  detail::KfdNode::drop(node_);
}

const Topology& KfdDevice::topology() const noexcept { return node_->topology(); }
Result<Memory, Diagnostic> KfdDevice::allocate(const MemoryRequest& r) { return node_->allocate(r); }
Result<SignalMemory, Diagnostic> KfdDevice::create_signal(const SignalRequest& r) { return node_->create_signal(r); }
Result<Event, Diagnostic> KfdDevice::create_event() { return node_->create_event(); }
Result<Queue, Diagnostic> KfdDevice::create_queue(const QueueRequest& r) { return node_->create_queue(r); }
Result<SharedHandle, Diagnostic> KfdDevice::share(const Memory& m) { return node_->share(m); }
Result<Memory, Diagnostic> KfdDevice::open_shared(const SharedHandle& h) { return node_->open_shared(h); }
std::optional<MemoryOwner> KfdDevice::origin(GpuVa va) const { return node_->origin(va); }
Errc KfdDevice::wait_event(const Event& e, Deadline d) noexcept { return node_->wait_event(e.id(), d); }
Result<Fault> KfdDevice::wait_fault(Deadline d) noexcept { return node_->wait_fault(d); }
std::optional<Fault> KfdDevice::fault(const Queue& q) const noexcept { return node_->fault(q.gpu()); }
Errc KfdDevice::flush_host_writes(GpuId g) const noexcept { return node_->flush_host_writes(g); }
Errc KfdDevice::peek(GpuVa va, std::span<std::byte> out) const noexcept { return node_->peek(va, out); }
Result<Clock> KfdDevice::clock(GpuId g) const noexcept { return node_->clock(g); }
const std::vector<KfdGpu>& KfdDevice::gpus() const noexcept { return node_->gpus(); }
std::string KfdDevice::version() const { return fmt::format("{}.{}", node_->version().major, node_->version().minor); }

}  // namespace sdma::inline v0
