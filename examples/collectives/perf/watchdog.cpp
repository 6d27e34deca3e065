// SPDX-License-Identifier: MIT
#include "watchdog.hpp"

#include <cstdio>
#include <cstdlib>

namespace collectives::perf {

using namespace std::chrono_literals;

namespace {

constexpr auto kWatchInterval = 50ms;
constexpr int kHung = 1;

}  // namespace

Watchdog::Scope::~Scope() {
  const std::lock_guard lock(dog_.mutex_);
  dog_.watches_.erase(at_);
}

Watchdog::Watchdog() : thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Watchdog::Scope Watchdog::watch(const char* what, std::chrono::nanoseconds limit) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  return {*this, watches_.insert(watches_.end(), {what, now + limit, limit})};
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kWatchInterval, [this] { return stop_; })) {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& w : watches_) {
      if (now < w.until) continue;
      std::fprintf(stderr,
                   "collective_perf: error: %s has not returned within %g s, and cannot be interrupted\n"
                   "  hint: if it is only slow, use a longer --timeout\n",
                   w.what, std::chrono::duration<double>(w.limit).count());
      end_at_once(kHung);
    }
  }
}

void end_at_once(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace collectives::perf
