// SPDX-License-Identifier: MIT
#pragma once
// The queues of an adversarial software device, in the hand of a run: its engines serve them again when this ends.
//
//   auto held = HeldQueues::of(device);       // null: another device, or another ordering; its engines go on
//   Baton baton{held->seed(), held->agents(), threads};
//
// One at a time for each device. Any thread. Errors: what the allocator throws.
#include "../engine/baton.hpp"
#include "sdma/device/device.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class SoftNode;

class HeldQueues {
 public:
  static std::unique_ptr<HeldQueues> of(const Device&);
  ~HeldQueues();
  HeldQueues(const HeldQueues&) = delete;
  HeldQueues& operator=(const HeldQueues&) = delete;

  std::uint64_t seed() const noexcept;
  std::vector<std::unique_ptr<Baton::Agent>> agents() { return std::move(agents_); }

 private:
  explicit HeldQueues(SoftNode&);
  SoftNode& node_;
  std::vector<std::unique_ptr<Baton::Agent>> agents_;
};

/// The seed of an adversarial software device; nothing for others.
std::optional<std::uint64_t> adversarial_seed(const Device&) noexcept;

}}}  // namespace sdma::v0_3::detail
