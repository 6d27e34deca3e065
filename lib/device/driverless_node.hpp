// SPDX-License-Identifier: MIT
#pragma once
// What the nodes of devices share that handle events and faults themselves, without a kernel driver.
//
//   class SoftNode final : public DriverlessNode<SoftNode> { friend SharedNode; friend DriverlessNode; ... };
//
//   an engine: trap(id), report(fault)          a program: create_event, wait_event, wait_fault
//
// Requires of Node: what SharedNode requires, and `create_signal(const SignalRequest&)`.
// In the child of a fork, each call is an error. Any thread; internal.
#include "fault_log.hpp"
#include "interrupts.hpp"
#include "shared_node.hpp"

namespace sdma::inline v0::detail {

template <class Node> class DriverlessNode : public SharedNode<Node> {
 public:
  Result<Event, Diagnostic> create_event() {
    auto* const n = static_cast<Node*>(this);
    auto word = n->create_signal({.value = Interrupts::kNone});
    if (!word) return word.error();
    const auto mailbox = (*word)->va;
    const auto id = interrupts_.add(std::move(*word));
    if (!id)
      return Diagnostic{.where = "create_event",
                        .message = "all event numbers of this device are used up",
                        .hint = "open another device"};
    this->hold();
    return Event(Lease(SharedNode<Node>::template give_back<&DriverlessNode::free_event>, n, *id), mailbox, *id);
  }
  Errc wait_event(std::uint32_t id, Deadline d) noexcept {
    return this->in_opening_process() ? interrupts_.wait(id, d) : Errc::stopped;
  }
  Result<Fault> wait_fault(Deadline d) noexcept {
    if (!this->in_opening_process()) return Errc::stopped;
    return faults_.wait(d);
  }

  // Called by engines.
  void trap(std::uint32_t id) noexcept { interrupts_.trap(id); }
  void report(const Fault& f) noexcept { faults_.add(f); }

 protected:
  DriverlessNode() = default;
  ~DriverlessNode() = default;

  FaultLog faults_;

 private:
  void free_event(std::uint64_t id) noexcept { interrupts_.remove(static_cast<std::uint32_t>(id)); }

  Interrupts interrupts_;
};

}  // namespace sdma::inline v0::detail
