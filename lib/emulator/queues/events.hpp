// SPDX-License-Identifier: MIT
#pragma once
// KFD events as in the kernel: a list of events, waiters, and the page of mailbox slots, where an engine stores the
// number of the event before it raises an interrupt.
//
//   FENCE  slot[id] = id           the mailbox
//   TRAP   id                      the interrupt: wakes no waiter while the slot still holds "unsignalled" (all ones)
//
// After an interrupt whose slot is unsignalled, the kernel searches all slots and signals those that are set. A TRAP
// before its mailbox FENCE is therefore a lost wake-up, here as in the kernel.
//
// A Unix signal whose handler runs ends a wait with EINTR; the arguments then have the time that was left, and no event
// has lost its signal. After a handler with SA_RESTART, the wait continues. A program that brings no page gets one at
// kEventsOffset of /dev/kfd, with fewer slots.
//
// Any thread may call anything at any time, engine threads included. Results are 0 or an errno.
#include "../../kfd/abi.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace sdma::emulator {

class Events {
 public:
  static constexpr std::uint64_t kUnsignalled = ~std::uint64_t{0};
  /// Where /dev/kfd has the node's page of slots, as in the kernel.
  static constexpr std::uint64_t kEventsOffset = std::uint64_t{2} << 62;

  /// `faulted`: called for each VM fault, by the engine's thread; must not throw.
  explicit Events(std::function<void(const kfd::MemoryException&)> faulted = {}) : faulted_(std::move(faulted)) {}

  /// `page`: kSignalEvents slots, which the first event of the process brings along; null with all others. `own`: the
  /// node's page, for a process that brings none.
  int create(kfd::CreateEvent& a, std::uint64_t* page = nullptr, std::uint64_t* own = nullptr);
  bool has_page() const noexcept { return slots_ != nullptr; }
  int destroy(std::uint32_t id);
  int set(std::uint32_t id);
  int reset(std::uint32_t id);
  /// Blocks until one or all of `data` are signalled or the timeout expires. Fills `data` and `w.result`.
  int wait(kfd::WaitEvents& args, std::span<kfd::EventData> data);

  /// Handles an interrupt with an event's number.
  void interrupt(std::uint32_t id) noexcept;
  /// Handles a VM fault: raises every memory event of the process.
  void memory_fault(const kfd::MemoryException& fault) noexcept;
  /// Handles a queue that cannot continue: raises every exception event of the process.
  void hw_exception() noexcept;

 private:
  class Wake;
  struct Wait;
  struct Event {
    std::uint32_t type{};
    bool auto_reset{}, signalled{};
    std::uint64_t age = 1;
    kfd::MemoryException fault{};
    std::list<Wait*> waits{};
  };

  void signal(Event& e);
  void acknowledge(std::uint32_t id) noexcept { __atomic_store_n(&slots_[id], kUnsignalled, __ATOMIC_RELEASE); }
  Event* find(std::uint32_t id) noexcept {
    const auto it = events_.find(id);
    return it == events_.end() ? nullptr : &it->second;
  }

  std::function<void(const kfd::MemoryException&)> faulted_;
  std::mutex mutex_;
  std::map<std::uint32_t, Event> events_;
  std::uint64_t* slots_{};
  std::uint32_t most_ = kfd::kSignalEvents;  ///< slots of the page
};

}  // namespace sdma::emulator
