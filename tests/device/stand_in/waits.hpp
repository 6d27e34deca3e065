// SPDX-License-Identifier: MIT
#pragma once
// Streams that wait for a word. One thread reads all their words again and again, with naps between, because many
// threads that poll would leave no processor to anyone else. Any thread may use it.
#include "context.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

namespace stand_in {

class Waits {
 public:
  static Waits& get();

  /// Blocks until the word is (cyclically) at least or equal to the value or cannot be read, or the context is dead.
  Status wait(Context&, Pointer, std::uint32_t value, bool equal);
  /// Something has changed: reads the words now.
  void nudge();

  /// Is there a wait in a stream, at its head or further back, that is not finished?
  bool any() const noexcept { return unfinished_ != 0; }
  void enqueued() noexcept { ++unfinished_; }
  void finished() noexcept { --unfinished_; }

 private:
  struct Waiter {
    Context& context;
    Pointer at;
    std::uint32_t value;
    bool equal;
    Status result = kNotReady;
    std::condition_variable ended{};

    /// kNotReady: not yet.
    Status ask() const;
  };

  void poll();

  std::atomic<std::uint64_t> unfinished_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiter*> waiters_;
  bool nudged_ = false, polling_ = false;
};

}  // namespace stand_in
