// SPDX-License-Identifier: MIT
// Opens a CudaDevice, and passes its calls to its node.
#include "cuda_node.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 {

Result<std::unique_ptr<CudaDevice>, Diagnostic> CudaDevice::open(const CudaOptions& o) {
  const auto found = detail::cuda::probe(o);
  if (!found.missing.empty()) return found.missing.front();
  const auto node = detail::cuda::Node::make(o, found);
  if (!node) return node.error();
  return std::unique_ptr<CudaDevice>(new CudaDevice(*node));
}

std::vector<Diagnostic> CudaDevice::missing(const CudaOptions& o) { return detail::cuda::probe(o).missing; }

CudaDevice::CudaDevice(detail::cuda::Node* n) noexcept : ForwardingDevice(*n), node_(n) {}
CudaDevice::~CudaDevice() { detail::cuda::Node::shut_down(node_); }

Result<Memory, Diagnostic> CudaDevice::adopt(void* p, std::uint64_t bytes, std::uint64_t gpus) {
  return node_->adopt(p, bytes, gpus);
}

const std::vector<CudaGpu>& CudaDevice::gpus() const noexcept { return node_->gpus(); }
std::uint32_t CudaDevice::physical_gpus() const noexcept { return node_->physical_gpus(); }
std::uint32_t CudaDevice::parked() const noexcept { return node_->parked(); }
CudaIssued CudaDevice::issued() const noexcept { return node_->issued(); }
std::string CudaDevice::version() const {
  const auto v = node_->driver().version;
  return fmt::format("CUDA {}.{}", v / 1000, v % 1000 / 10);
}

}}  // namespace sdma::v0_3
