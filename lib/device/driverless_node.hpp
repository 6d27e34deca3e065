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
#include "../core/await_change.hpp"
#include "fault_log.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/memory.hpp"
#include "sdma/packets/registry.hpp"
#include "shared_node.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The events of a device without a kernel driver: mailboxes, interrupts, and threads that wait for them.
///
///   id = interrupts.add(std::move(word));      // the word's value is kNone
///   interrupts.trap(id);                       // after a FENCE to the mailbox; otherwise the interrupt is lost
///   interrupts.wait(id, deadline)
///
/// An event is set or not: several interrupts before a wait count as one, as in the kernel. Any thread; internal.
/// Errors: timed_out; bad_argument for an event that does not exist.
class Interrupts {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  ///< in a mailbox: no event has arrived

  /// nullopt: all event numbers are used up.
  std::optional<std::uint32_t> add(SignalMemory word) {
    const std::lock_guard lock(mutex_);
    if (!fits(Trap{.context = next_})) return {};
    const auto id = next_++;
    events_.emplace(id, State{.mailbox = word->word, .word = std::move(word)});
    return id;
  }
  void remove(std::uint32_t id) noexcept {
    SignalMemory last;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    const auto at = events_.find(id);
    if (at == events_.end()) return;
    last = std::move(at->second.word);
    events_.erase(at);
    came_.notify_all();
  }
  void trap(std::uint32_t id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = events_.find(id);
    if (at == events_.end()) return;
    atomic_ref mailbox(*at->second.mailbox);
    if (mailbox.exchange(kNone, std::memory_order_acq_rel) == kNone) return;  // lost wake-up, as in the kernel
    ++at->second.pending;
    came_.notify_all();
  }
  Errc wait(std::uint32_t id, Deadline d) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto at = events_.find(id);
      if (at == events_.end()) return Errc::bad_argument;
      if (at->second.pending != 0) {
        at->second.pending = 0;
        return Errc::ok;
      }
      if (d.passed()) return Errc::timed_out;
      await_change(came_, lock, d);
    }
  }

 private:
  struct State {
    std::uint64_t* mailbox{};
    SignalMemory word{};
    std::uint32_t pending{};
  };
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::uint32_t, State> events_;
  std::uint32_t next_ = 1;
};

template <class Node> class DriverlessNode : public SharedNode<Node> {
 public:
  Result<Event, Diagnostic> create_event() final {
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
  Errc wait_event(const Event& e, Deadline d) noexcept final {
    return this->in_opening_process() ? interrupts_.wait(e.id(), d) : Errc::stopped;
  }
  Result<Fault> wait_fault(Deadline d) noexcept final {
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

}}}  // namespace sdma::v0_3::detail
