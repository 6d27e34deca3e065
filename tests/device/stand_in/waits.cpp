// SPDX-License-Identifier: MIT
#include "waits.hpp"

#include "word.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace stand_in {

Waits& Waits::get() {
  static auto* const only = new Waits;
  return *only;
}

Status Waits::Waiter::ask() const {
  if (const auto code = context.status()) return code;
  bool met = false;
  const auto code = with_word<std::uint32_t>(at, context.device(), Use::read, [&](std::atomic_ref<std::uint32_t> word) {
    const auto now = word.load(std::memory_order_acquire);
    met = equal ? now == value : static_cast<std::int32_t>(now - value) >= 0;
  });
  return code != kSuccess || met ? code : kNotReady;
}

Status Waits::wait(Context& c, Pointer at, std::uint32_t value, bool equal) {
  Waiter w{.context = c, .at = at, .value = value, .equal = equal};
  for (int i = 0; i < 100; ++i)
    if (const auto code = w.ask(); code != kNotReady) return code;
  std::unique_lock lock(mutex_);
  if (!polling_) {
    std::thread([this] { poll(); }).detach();
    polling_ = true;
  }
  waiters_.push_back(&w);
  nudged_ = true;
  changed_.notify_one();
  w.ended.wait(lock, [&] { return w.result != kNotReady; });
  return w.result;
}

void Waits::nudge() {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  changed_.notify_one();
}

void Waits::poll() {
  using namespace std::chrono_literals;
  // Prompt after a change; when nothing has changed for a while, other programs get the processor.
  constexpr int kPromptRounds = 500;
  ::prctl(PR_SET_TIMERSLACK, 1000);
  int quiet = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    if (waiters_.empty()) changed_.wait(lock, [&] { return !waiters_.empty(); });
    else changed_.wait_for(lock, quiet < kPromptRounds ? 30us : 150us, [&] { return nudged_; });
    quiet = nudged_ ? 0 : std::min(quiet + 1, kPromptRounds);
    nudged_ = false;
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      auto& w = **it;
      w.result = w.ask();
      if (w.result == kNotReady) {
        ++it;
        continue;
      }
      quiet = 0;
      it = waiters_.erase(it);
      w.ended.notify_one();
    }
  }
}

}  // namespace stand_in
