// SPDX-License-Identifier: MIT
#include "sdma/device/soft.hpp"

#include "held_queues.hpp"
#include "soft_node.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 {

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

detail::SoftNode& detail::node_of(const SoftDevice& d) noexcept { return *d.node_; }

namespace detail {

std::optional<std::uint64_t> adversarial_seed(const Device& d) noexcept {
  const auto* const soft = dynamic_cast<const SoftDevice*>(&d);
  return soft && node_of(*soft).adversarial() ? std::optional(node_of(*soft).options().seed) : std::nullopt;
}

HeldQueues::HeldQueues(SoftNode& n) : node_(n), agents_(n.hold_queues()) {}
HeldQueues::~HeldQueues() { node_.let_go(); }
std::uint64_t HeldQueues::seed() const noexcept { return node_.options().seed; }

std::unique_ptr<HeldQueues> HeldQueues::of(const Device& d) {
  if (!adversarial_seed(d)) return nullptr;
  return std::unique_ptr<HeldQueues>(new HeldQueues(node_of(dynamic_cast<const SoftDevice&>(d))));
}

}  // namespace detail

SoftDevice::SoftDevice(detail::SoftNode* n) noexcept : ForwardingDevice(*n), node_(n) {}
SoftDevice::~SoftDevice() { detail::SoftNode::shut_down(node_); }

std::uint64_t SoftDevice::lost_faults() const noexcept { return node_->lost_faults(); }
std::vector<EngineCounters> SoftDevice::counters() const { return node_->counters(); }

}}  // namespace sdma::v0_3
