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
#include <list>
#include <mutex>
#include <thread>

namespace collectives::perf {

class Watchdog {
  struct Watch {
    const char* what;
    std::chrono::steady_clock::time_point until;
    std::chrono::nanoseconds limit;
  };

 public:
  class [[nodiscard]] Scope {
   public:
    Scope(Watchdog& dog, std::list<Watch>::iterator at) noexcept : dog_(dog), at_(at) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    Watchdog& dog_;
    std::list<Watch>::iterator at_;
  };

  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Until the scope ends. `what` must live as long.
  Scope watch(const char* what, std::chrono::nanoseconds limit);

 private:
  void run();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::list<Watch> watches_{};
  bool stop_ = false;
  std::thread thread_;
};

/// The limit of calls that load libraries and kernels, which may take longer than a round may.
inline std::chrono::nanoseconds set_up_limit(const Settings& s) { return 4 * s.timeout; }

/// Ends the program at once: an orderly end might wait for ever for what a library has left on a GPU.
[[noreturn]] void end_at_once(int code);

}  // namespace collectives::perf
