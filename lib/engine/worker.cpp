// SPDX-License-Identifier: MIT
#include "worker.hpp"

#include "sdma/core/compiler.hpp"
#include "signals_blocked.hpp"

#include <pthread.h>

#include <algorithm>

namespace sdma::inline v0::detail {
namespace {

using namespace std::chrono_literals;

}  // namespace

void Worker::start(const char* name) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), name);
}

bool Worker::stop() noexcept {
  if (!thread_.joinable()) return false;
  {
    const std::lock_guard guard(*this);
    stopping_ = true;
  }
  served_.wake();
  thread_.join();
  return true;
}

void Worker::run() noexcept {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (asked_.load(std::memory_order_relaxed) != 0) {
      // The other thread holds the mutex for a moment only. The ticket comes first, so that no wake-up is missed.
      const auto ticket = granted_.ticket();
      lock.unlock();
      if (asked_.load(std::memory_order_relaxed) != 0) granted_.sleep(ticket, Deadline::in(1ms));
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

void Worker::rest(Progress p) noexcept {
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

}  // namespace sdma::inline v0::detail
