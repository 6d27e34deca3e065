// SPDX-License-Identifier: MIT
#pragma once
// A thread that serves queues: it runs rounds while there is work, spins briefly when there is none, and then sleeps.
// The owner of the queues implements Served: what a round does, and how to sleep. Internal.
//
//   class Engine : Worker::Served { ... };
//   Worker worker{*this, {.spin = 30us, .first_nap = 50us}};
//   worker.start("sdma 0.14");                      // the thread blocks all signals
//   { const std::lock_guard lock(worker); ... }     // between two rounds, even if the worker is busy
//   worker.stop();
//
//     +---- another thread asks for the lock: the worker lets it go first
//     v
//   round() ---- progressed ----> the next round, at once
//     | idle, waiting
//     v
//   spin(fresh) -- true --> pause, then the next round     fresh: the last work was less than Pace::spin ago
//     | false
//     v
//   rest(p, nap)    again: the next round   woken: the same, and work counts as fresh   slept: the next nap is doubled
//
// Rounds run under the lock; spin() and rest() do not. So that no wake-up is lost, rest() must return for every wake()
// that came after its round began. A Served that sleeps in a Parking therefore takes the ticket in round(). Releasing
// the lock does not end a rest, so wake the worker after a change.
//
// Any thread except the worker's may lock. Call `stop` before you destroy anything that the rounds use. The child of a
// fork does not have this thread, and in the child the lock may be held forever. Errors: `start` throws what
// std::thread throws.
#include "park.hpp"
#include "pipeline.hpp"
#include "sdma/core/compiler.hpp"
#include "signals_blocked.hpp"

#include <pthread.h>
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The progress of a round, from that of its queues.
constexpr Progress busier(Progress a, Progress b) noexcept {
  return b == Progress::progressed || a == Progress::idle ? b : a;
}

class Worker {
 public:
  enum class Rest : std::uint8_t { again, woken, slept };

  /// Only the worker's thread calls these, except `wake`.
  class Served {
   public:
    virtual Progress round() noexcept = 0;
    /// True: run the next round at once. False: rest.
    virtual bool spin(bool fresh) noexcept { return fresh; }
    virtual Rest rest(Progress, std::chrono::nanoseconds nap) noexcept = 0;
    /// Ends the current rest, or the next one. Any thread.
    virtual void wake() noexcept = 0;

   protected:
    ~Served() = default;
  };

  struct Pace {
    std::chrono::nanoseconds spin{}, first_nap{}, longest_nap = std::chrono::milliseconds(1);
    int pauses{};  ///< pause instructions between two rounds while it spins
  };

  Worker(Served& s, const Pace& p) noexcept : served_(s), pace_(p) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// At most once. The caller may hold the lock: the first round waits for it.
  void start(const char* name) {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), name);
  }
  /// Hold the lock, or make sure that no other thread calls start.
  bool started() const noexcept { return thread_.joinable(); }
  /// Returns after the thread has ended. False if none was started.
  bool stop() noexcept {
    if (!thread_.joinable()) return false;
    {
      const std::lock_guard guard(*this);
      stopping_ = true;
    }
    served_.wake();
    thread_.join();
    return true;
  }

  void lock() noexcept {
    asked_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
  }
  bool try_lock() noexcept {
    if (!mutex_.try_lock()) return false;
    asked_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// Does another thread wait for the lock? A long round may then end early.
  bool wanted() const noexcept { return asked_.load(std::memory_order_relaxed) != 0; }
  void unlock() noexcept {
    asked_.fetch_sub(1, std::memory_order_relaxed);
    mutex_.unlock();
    granted_.wake();
  }

 private:
  using Clock = Deadline::Clock;
  void run() noexcept {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (asked_.load(std::memory_order_relaxed) != 0) {
        // The other thread holds the mutex for a moment only. The ticket comes first, so that no wake-up is missed.
        const auto ticket = granted_.ticket();
        lock.unlock();
        if (asked_.load(std::memory_order_relaxed) != 0)
          granted_.sleep(ticket, Deadline::in(std::chrono::milliseconds(1)));
        lock.lock();
        continue;
      }
      const auto p = served_.round();
      if (p == Progress::progressed) {
        last_work_ = {};
        continue;
      }
      lock.unlock();
      rest(p);
      lock.lock();
    }
  }
  void rest(Progress p) noexcept {
    // A round that made progress does not read the clock; the first round without progress after it does.
    const auto now = Clock::now();
    if (last_work_ == Clock::time_point{}) {
      last_work_ = now;
      nap_ = pace_.first_nap;
    }
    if (served_.spin(now - last_work_ < pace_.spin)) {
      for (int i = 0; i < pace_.pauses; ++i) SDMA_PAUSE();
      return;
    }
    switch (served_.rest(p, nap_)) {
      case Rest::again: break;
      case Rest::woken: last_work_ = {}; break;
      case Rest::slept: nap_ = std::min(nap_ * 2, pace_.longest_nap); break;
    }
  }

  Served& served_;
  const Pace pace_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> asked_{0};  ///< how many other threads hold the mutex or wait for it
  Parking granted_;                      ///< where the worker sleeps while others hold the mutex
  bool stopping_ = false;                ///< guarded by the mutex
  std::thread thread_;

  // Used only by the thread.
  Clock::time_point last_work_{};  ///< zero: there was work since the clock was last read
  std::chrono::nanoseconds nap_{};
};

}}}  // namespace sdma::v0_3::detail
