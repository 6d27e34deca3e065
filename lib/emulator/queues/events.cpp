// SPDX-License-Identifier: MIT
#include "events.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>
#include <vector>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kFirstOther = 0x70000000;  ///< numbers of events without a slot
constexpr std::uint32_t kForever = 0xffffffff;
constexpr std::uint32_t kOwnSlots = 256;  ///< as many as the kernel's own page has at first
bool has_slot(std::uint32_t type) noexcept { return type == kfd::kEventSignal || type == kfd::kEventDebug; }
/// Whether the handlers that this process has installed may all be restarted. The kernel does not say which one ran.
bool all_restart() noexcept {
  for (int n = 1; n < SIGRTMAX; ++n) {
    struct sigaction s {};
    if (::sigaction(n, nullptr, &s) != 0 || s.sa_handler == SIG_DFL || s.sa_handler == SIG_IGN) continue;
    if ((s.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace

/// A condition variable whose wait a signal can end. Everything is called under the lock of the events.
class Events::Wake {
 public:
  void notify() noexcept {
    word_.fetch_add(1, std::memory_order_relaxed);
    ::syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  /// Returns 0 after a notification, ETIMEDOUT, or EINTR. `left`: null for no limit.
  int wait(std::unique_lock<std::mutex>& lock, const timespec* left) noexcept {
    const auto seen = word_.load(std::memory_order_relaxed);
    lock.unlock();
    const auto r = ::syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, seen, left, nullptr, 0);
    const int error = r == 0 || errno == EAGAIN ? 0 : errno;
    lock.lock();
    return error;
  }

 private:
  std::uint32_t* address() noexcept { return reinterpret_cast<std::uint32_t*>(&word_); }
  std::atomic<std::uint32_t> word_{0};
};

struct Events::Wait {
  Wake* changed{};
  Event* event{};  ///< null: destroyed during the wait
  bool activated{}, wants_age{};
};

int Events::create(kfd::CreateEvent& a, std::uint64_t* page, std::uint64_t* own) {
  const std::lock_guard lock(mutex_);
  if (page && slots_) return EINVAL;
  const bool slot = has_slot(a.type);
  std::uint32_t id = slot ? 1 : kFirstOther;
  for (auto it = events_.lower_bound(id); it != events_.end() && it->first == id; ++it) ++id;
  const bool first = slot && !page && !slots_;
  if (first && !own) return ENOMEM;
  if (slot && id >= (first ? kOwnSlots : most_)) return ENOSPC;
  auto& e = events_[id];
  e.type = a.type;
  e.auto_reset = a.auto_reset != 0;
  if (page || first) {
    slots_ = page ? page : own;
    most_ = page ? kfd::kSignalEvents : kOwnSlots;
    std::fill_n(slots_, most_, kUnsignalled);
  }
  a.event_id = id;
  // The kernel's answer. Never zero, because ROCr reads zero as "no mailbox", and its blocked waits would not end.
  a.page_offset = kEventsOffset;
  a.slot = slot ? id : 0;
  a.trigger_data = slot ? id : 0;
  return 0;
}

int Events::destroy(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  auto* e = find(id);
  if (!e) return EINVAL;
  for (auto* w : e->waits) {
    w->event = nullptr;
    w->changed->notify();
  }
  events_.erase(id);
  return 0;
}

int Events::set(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  auto* e = find(id);
  if (!e || e->type != kfd::kEventSignal) return EINVAL;
  signal(*e);
  return 0;
}

int Events::reset(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  auto* e = find(id);
  if (!e || e->type != kfd::kEventSignal) return EINVAL;
  e->signalled = false;
  return 0;
}

int Events::wait(kfd::WaitEvents& args, std::span<kfd::EventData> data) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(args.timeout_ms);
  std::unique_lock lock(mutex_);
  Wake changed;
  std::vector<Wait> waits(data.size());
  // However this function ends, no event refers to its waits. It runs under the lock.
  struct Leave {
    std::vector<Wait>& all;
    ~Leave() {
      for (auto& w : all)
        if (w.event) w.event->waits.remove(&w);
    }
  } const leave{waits};
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto* e = find(data[i].event_id);
    if (!e) return EINVAL;
    e->waits.push_back(&waits[i]);
    waits[i].event = e;
  }
  // A wait that cannot begin takes no signal away.
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto* e = waits[i].event;
    // If the caller gives an age of the event and that age has passed, return at once.
    const auto known = e->type == kfd::kEventSignal ? data[i].last_age : 0;
    waits[i] = {.changed = &changed,
                .event = e,
                .activated = e->signalled || (known != 0 && known != e->age),
                .wants_age = known != 0};
    e->signalled = e->signalled && !e->auto_reset;
  }
  const auto result = [&] {
    std::size_t activated = 0;
    for (const auto& w : waits) {
      if (!w.event) return kfd::kWaitFail;
      activated += w.activated;
    }
    const bool done = activated == waits.size() || (activated != 0 && !args.wait_for_all);
    return done ? kfd::kWaitComplete : kfd::kWaitTimeout;
  };
  auto r = result();
  using std::chrono::nanoseconds;
  bool interrupted = false;
  while (r == kfd::kWaitTimeout && args.timeout_ms != 0 && !interrupted) {
    const auto left = std::max(nanoseconds(until - Clock::now()), nanoseconds(0)).count();
    const timespec limit{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    const int error = changed.wait(lock, args.timeout_ms == kForever ? nullptr : &limit);
    r = result();
    if (error == ETIMEDOUT) break;
    // Without a limit, the kernel has continued the wait by itself after a handler with SA_RESTART.
    interrupted = error == EINTR && (args.timeout_ms == kForever || !all_restart());
  }
  if (r == kfd::kWaitTimeout && interrupted) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (args.timeout_ms != kForever) args.timeout_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(left, 0));
    args.result = r;
    for (auto& w : waits) {
      if (!w.event) continue;
      auto* const e = std::exchange(w.event, nullptr);
      e->waits.remove(&w);
      if (w.activated && e->auto_reset) signal(*e);
    }
    return EINTR;
  }
  if (r == kfd::kWaitComplete)
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (!waits[i].activated) continue;
      if (waits[i].event->type == kfd::kEventMemory) data[i].memory = waits[i].event->fault;
      else if (waits[i].event->type == kfd::kEventHwException) data[i].exception = {};  // nothing was reset
      else if (waits[i].wants_age) data[i].last_age = waits[i].event->age;
    }
  args.result = r;
  return r == kfd::kWaitFail ? EIO : 0;
}

void Events::interrupt(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  if (!slots_) return;
  const auto set = [&](std::uint32_t n) { return __atomic_load_n(&slots_[n], __ATOMIC_ACQUIRE) != kUnsignalled; };
  auto* named = id < most_ ? find(id) : nullptr;
  if (named && set(id)) {
    acknowledge(id);
    signal(*named);
    return;
  }
  for (auto& [n, e] : events_)
    if (n < most_ && set(n)) {
      acknowledge(n);
      signal(e);
    }
}

void Events::memory_fault(const kfd::MemoryException& fault) noexcept {
  if (faulted_) faulted_(fault);
  const std::lock_guard lock(mutex_);
  for (auto& [n, e] : events_)
    if (e.type == kfd::kEventMemory) {
      e.fault = fault;
      signal(e);
    }
}

void Events::hw_exception() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [n, e] : events_)
    if (e.type == kfd::kEventHwException) signal(e);
}

void Events::signal(Event& e) {
  e.signalled = !e.auto_reset || e.waits.empty();
  ++e.age;
  for (auto* w : e.waits) {
    w->activated = true;
    w->changed->notify();
  }
}

}  // namespace sdma::emulator
