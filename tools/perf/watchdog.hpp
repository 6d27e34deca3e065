// SPDX-License-Identifier: MIT
#pragma once
// Bounds calls of other libraries, which take no deadline.
//
//   Watchdog dog;
//   {
//     const auto bounded = dog.watch("ncclGroupEnd", 30s);
//     nccl.group_end();                                   // if it has not returned after 30 s, the program ends
//   }
//
// A call that hangs cannot be taken back, so the watchdog prints which call it was and ends the program with
// exit code 1, without destructors. Several threads may watch at once. One thread of its own, which wakes up
// every 50 ms. No errors.
#include "settings.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace collectives::perf {

inline constexpr std::chrono::milliseconds kWatchInterval{50};
inline constexpr int kHung = 1;

/// Ends the program at once: an orderly end might wait for ever for what a library has left on a GPU.
[[noreturn]] inline void end_at_once(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

class Watchdog {
  struct Watch {
    const char* what;
    std::chrono::steady_clock::time_point until;
    std::chrono::nanoseconds limit;
  };

 public:
  Watchdog() : thread_([this] { run(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Until what it returns is destroyed. `what` must live as long.
  [[nodiscard]] std::shared_ptr<void> watch(const char* what, std::chrono::nanoseconds limit) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    const auto at = watches_.insert(watches_.end(), {what, now + limit, limit});
    return {nullptr, [this, at](std::nullptr_t) {
              const std::lock_guard end(mutex_);
              watches_.erase(at);
            }};
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatchInterval, [this] { return stop_; })) {
      const auto now = std::chrono::steady_clock::now();
      for (const auto& w : watches_) {
        if (now < w.until) continue;
        std::fprintf(stderr,
                     "sdma perf: error: %s has not returned within %g s, and cannot be interrupted\n"
                     "  hint: if it is only slow, use a longer --timeout\n",
                     w.what, std::chrono::duration<double>(w.limit).count());
        end_at_once(kHung);
      }
    }
  }

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::list<Watch> watches_{};
  bool stop_ = false;
  std::thread thread_;
};

/// The limit of calls that load libraries and kernels, which may take longer than a round may.
inline std::chrono::nanoseconds set_up_limit(const Settings& s) { return 4 * s.timeout; }

}  // namespace collectives::perf
