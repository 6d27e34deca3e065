// SPDX-License-Identifier: MIT
#include "node.hpp"

#include <fmt/format.h>

namespace sdma::inline v0 {

Result<std::unique_ptr<CudaDevice>, Diagnostic> CudaDevice::open(const CudaOptions& o) {
  const auto found = detail::cuda::probe(o);
  if (!found.missing.empty()) return found.missing.front();
  const auto node = detail::cuda::Node::make(o, found);
  if (!node) return node.error();
  return std::unique_ptr<CudaDevice>(new CudaDevice(*node));
}

std::vector<Diagnostic> CudaDevice::missing(const CudaOptions& o) { return detail::cuda::probe(o).missing; }

CudaDevice::~CudaDevice() {
  if (!node_->in_opening_process()) return;
  node_->stop();
  detail::cuda::Node::drop(node_);
}

const Topology& CudaDevice::topology() const noexcept { return node_->topology(); }
Result<Memory, Diagnostic> CudaDevice::allocate(const MemoryRequest& r) { return node_->allocate(r); }
Result<SignalMemory, Diagnostic> CudaDevice::create_signal(const SignalRequest& r) { return node_->create_signal(r); }
Result<Event, Diagnostic> CudaDevice::create_event() { return node_->create_event(); }
Result<Queue, Diagnostic> CudaDevice::create_queue(const QueueRequest& r) { return node_->create_queue(r); }
Errc CudaDevice::wait_event(const Event& e, Deadline d) noexcept { return node_->wait_event(e.id(), d); }
Result<Fault> CudaDevice::wait_fault(Deadline d) noexcept { return node_->wait_fault(d); }
std::optional<Fault> CudaDevice::fault(const Queue& q) const noexcept { return node_->fault(q); }
Errc CudaDevice::flush_host_writes(GpuId g) const noexcept { return node_->flush(g); }
Errc CudaDevice::peek(GpuVa va, std::span<std::byte> out) const noexcept { return node_->peek(va, out); }
Result<Memory, Diagnostic> CudaDevice::adopt(void* p, std::uint64_t bytes, std::uint64_t gpus) {
  return node_->adopt(p, bytes, gpus);
}
Result<Clock> CudaDevice::clock(GpuId g) const noexcept { return node_->clock(g); }

const std::vector<CudaGpu>& CudaDevice::gpus() const noexcept { return node_->gpus(); }
std::uint32_t CudaDevice::physical_gpus() const noexcept { return node_->physical_gpus(); }
std::uint32_t CudaDevice::parked() const noexcept { return node_->parked(); }
std::string CudaDevice::version() const {
  const auto v = node_->driver().version;
  return fmt::format("CUDA {}.{}", v / 1000, v % 1000 / 10);
}

}  // namespace sdma::inline v0
