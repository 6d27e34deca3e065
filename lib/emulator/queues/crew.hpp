// SPDX-License-Identifier: MIT
#pragma once
// Threads that help another one with a number of tasks of about the same length.
//
//   Crew crew("sdma gpu0");
//   crew.grow(3);                                        // three threads beside the caller's, or fewer
//   crew.share(5, [&](std::uint32_t i) { serve(i); });   // 0 to 4, in any order, on any of the four; returns after all
//
//   job   [ number of the job | next task | tasks ]: a thread takes a task by counting up `next task`. A task of an
//         older job cannot be taken, because the number has changed
//
// A thread spins for a moment after its last task, then sleeps until there are tasks, and checks once per second
// (1 s). `share` spins for the last tasks, then sleeps until they have returned, and counts again after 1 ms. Threads
// block all signals, and end with the object.
// One thread calls `grow` and `share`. Nothing here fails: a crew of no thread does everything on the caller's.
#include "../../engine/park.hpp"
#include "../../engine/signals_blocked.hpp"
#include "../pace.hpp"
#include "../thread_sanitizer.hpp"
#include "sdma/core/compiler.hpp"

#include <pthread.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace sdma::emulator {

class Crew {
 public:
  explicit Crew(std::string name) : name_(std::move(name)) {}
  ~Crew() {
    stopping_.store(true, std::memory_order_release);
    posted_.wake();
    for (auto& t : threads_) t.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const noexcept { return threads_.size(); }
  void grow(std::size_t threads) noexcept {
    try {
      const sdma::detail::SignalsBlocked blocked;
      while (threads_.size() < threads) {
        threads_.emplace_back([this] { run(); });
        pthread_setname_np(threads_.back().native_handle(), name_.c_str());
      }
    } catch (const std::exception&) {  // those that there are will do
    }
  }

  template <class Fn> void share(std::uint32_t tasks, Fn fn) noexcept {
    if (tasks == 0) return;
    task_ = [](void* f, std::uint32_t i) { (*static_cast<Fn*>(f))(i); };
    context_ = &fn;
    left_.store(tasks, std::memory_order_relaxed);
    const auto number = job_.load(std::memory_order_relaxed).number + 1;
    job_.store({.number = number, .next = 0, .tasks = static_cast<std::uint16_t>(tasks)}, std::memory_order_release);
    posted_.wake();
    while (work()) {}
    for (int spins = 0; left_.load(std::memory_order_acquire) != 0; ++spins) {
      SDMA_PAUSE();
      if (spins < kSpins) continue;
      const auto ticket = done_.ticket();
      if (left_.load(std::memory_order_acquire) != 0) done_.sleep(ticket, Deadline::in(std::chrono::milliseconds(1)));
    }
  }

 private:
  /// Aligned to its size: without that, clang calls libatomic.
  struct alignas(8) Job {
    std::uint32_t number{};
    std::uint16_t next{}, tasks{};
  };
  static constexpr int kSpins = 2000;

  /// Takes a task and runs it. False: there is none.
  bool work() noexcept {
    auto job = job_.load(std::memory_order_acquire);
    Job taken;
    do {
      if (job.next >= job.tasks) return false;
      taken = job;
      ++taken.next;
    } while (!job_.compare_exchange_weak(job, taken, std::memory_order_acq_rel, std::memory_order_acquire));
    task_(context_, job.next);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.wake();
    return true;
  }
  void run() noexcept {
    exempt_this_thread();
    auto idle_since = Deadline::Clock::now();
    for (;;) {
      const auto ticket = posted_.ticket();
      if (stopping_.load(std::memory_order_acquire)) return;
      if (work()) {
        while (work()) {}
        idle_since = Deadline::Clock::now();
      } else if (Deadline::Clock::now() - idle_since < kNodePace.spin) {
        for (int i = 0; i < kNodePace.pauses; ++i) SDMA_PAUSE();
      } else {
        posted_.sleep(ticket, Deadline::in(std::chrono::seconds(1)));
        idle_since = Deadline::Clock::now();
      }
    }
  }

  const std::string name_;
  std::vector<std::thread> threads_{};
  // Written before job_ is, and read after a task of that job was taken: the job has not ended before that.
  void (*task_)(void*, std::uint32_t){};
  void* context_{};
  std::atomic<Job> job_{Job{}};
  static_assert(std::atomic<Job>::is_always_lock_free);
  std::atomic<std::uint32_t> left_{0};  ///< tasks that have not returned
  std::atomic<bool> stopping_{false};
  sdma::detail::Parking posted_, done_;
};

}  // namespace sdma::emulator
