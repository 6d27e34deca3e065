// SPDX-License-Identifier: MIT
// Opens a RocrDevice, and passes its calls to its node.
#include "rocr_node.hpp"

namespace sdma { inline namespace v0_3 {

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

RocrDevice::RocrDevice(detail::RocrNode* n) noexcept : ForwardingDevice(*n), node_(n) {}
RocrDevice::~RocrDevice() { detail::RocrNode::shut_down(node_); }

Result<Memory, Diagnostic> RocrDevice::adopt(void* p, std::uint64_t bytes, std::uint64_t gpus) {
  return node_->adopt(p, bytes, gpus);
}
RocrQueues RocrDevice::queues() const noexcept { return node_->queues(); }
std::string RocrDevice::version() const { return node_->version(); }

}}  // namespace sdma::v0_3
