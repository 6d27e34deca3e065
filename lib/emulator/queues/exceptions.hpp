// SPDX-License-Identifier: MIT
#pragma once
// Exceptions that a debugger of the process may ask for: bits in the status
// of a queue, a GPU or the process, recorded only while a debugger is there.
//
//   exceptions.raise(queue.exceptions, kfd::exception_bit(19));
//
// Any thread may call anything, engine threads included. Nothing allocates or fails.
#include "../../kfd/abi.hpp"

#include <sys/eventfd.h>
#include <atomic>

namespace sdma::emulator {

class Exceptions {
 public:
  void begin(std::uint64_t subscribed) noexcept {
    subscribe(subscribed);
    on_.store(true, std::memory_order_release);
  }
  void end() noexcept { on_.store(false, std::memory_order_release); }
  /// The exceptions about which the debugger is notified.
  void subscribe(std::uint64_t mask) noexcept { subscribed_.store(mask, std::memory_order_release); }
  std::uint64_t subscribed() const noexcept { return subscribed_.load(std::memory_order_acquire); }
  /// An eventfd that is rung for each exception with a subscription; -1: none.
  void ring(int eventfd) noexcept { bell_.store(eventfd, std::memory_order_release); }

  void raise(std::atomic<std::uint64_t>& status, std::uint64_t bits) noexcept {
    if (!on_.load(std::memory_order_acquire)) return;
    status.fetch_or(bits, std::memory_order_acq_rel);
    const int bell = bell_.load(std::memory_order_acquire);
    if ((subscribed() & bits) != 0 && bell >= 0) (void)::eventfd_write(bell, 1);
  }

 private:
  std::atomic<bool> on_{false};
  std::atomic<std::uint64_t> subscribed_{0};
  std::atomic<int> bell_{-1};
};

}  // namespace sdma::emulator
