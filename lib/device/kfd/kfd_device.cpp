// SPDX-License-Identifier: MIT
// Opens a KfdDevice, and passes its calls to its node.
#include "sdma/device/kfd.hpp"

#include "kfd_node.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 {

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

KfdDevice::KfdDevice(detail::KfdNode* n) noexcept : ForwardingDevice(*n), node_(n) {}
KfdDevice::~KfdDevice() { detail::KfdNode::shut_down(node_); }

const std::vector<KfdGpu>& KfdDevice::gpus() const noexcept { return node_->gpus(); }
std::string KfdDevice::version() const { return fmt::format("{}.{}", node_->version().major, node_->version().minor); }

}}  // namespace sdma::v0_3
