// SPDX-License-Identifier: MIT
#include "events.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kFirstOther = 0x70000000;                ///< numbers of events without a slot
constexpr std::uint64_t kEventsOffset = std::uint64_t{2} << 62;  ///< the kernel's answer; never mapped on this GPU
constexpr std::uint32_t kForever = 0xffffffff;

bool has_slot(std::uint32_t type) noexcept { return type == kfd::kEventSignal || type == kfd::kEventDebug; }

}  // namespace

int Events::create(kfd::CreateEvent& a, std::uint64_t* page) {
  const std::lock_guard lock(mutex_);
  if (page && slots_) return EINVAL;
  const bool slot = has_slot(a.type);
  std::uint32_t id = slot ? 1 : kFirstOther;
  for (auto it = events_.lower_bound(id); it != events_.end() && it->first == id; ++it) ++id;
  if (slot && !page && !slots_) return EINVAL;
  if (slot && id >= kfd::kSignalEvents) return ENOSPC;
  auto& e = events_[id];
  e.type = a.type;
  e.auto_reset = a.auto_reset != 0;
  if (page) {
    std::fill_n(page, kfd::kSignalEvents, kUnsignalled);
    slots_ = page;
  }
  a.event_id = id;
  // Never zero, because ROCr reads zero as "no mailbox", and its blocked waits would not end.
  a.page_offset = kEventsOffset;
  a.slot = slot ? id : 0;
  a.trigger_data = slot ? id : 0;
  return 0;
}

Events::Event* Events::find(std::uint32_t id) noexcept {
  const auto it = events_.find(id);
  return it == events_.end() ? nullptr : &it->second;
}

int Events::destroy(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  auto* e = find(id);
  if (!e) return EINVAL;
  for (auto* w : e->waits) {
    w->event = nullptr;
    w->changed->notify_all();
  }
  events_.erase(id);
  return 0;
}

void Events::signal(Event& e) {
  e.signalled = !e.auto_reset || e.waits.empty();
  ++e.age;
  for (auto* w : e.waits) {
    w->activated = true;
    w->changed->notify_all();
  }
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

void Events::acknowledge(std::uint32_t id) noexcept { __atomic_store_n(&slots_[id], kUnsignalled, __ATOMIC_RELEASE); }

void Events::interrupt(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  if (!slots_) return;
  const auto set = [&](std::uint32_t n) { return __atomic_load_n(&slots_[n], __ATOMIC_ACQUIRE) != kUnsignalled; };
  auto* named = id < kfd::kSignalEvents ? find(id) : nullptr;
  if (named && set(id)) {
    acknowledge(id);
    signal(*named);
    return;
  }
  for (auto& [n, e] : events_)
    if (n < kfd::kSignalEvents && set(n)) {
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

int Events::wait(kfd::WaitEvents& args, std::span<kfd::EventData> data) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(args.timeout_ms);
  std::unique_lock lock(mutex_);
  std::condition_variable changed;
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
  while (r == kfd::kWaitTimeout && args.timeout_ms != 0) {
    if (args.timeout_ms == kForever) changed.wait(lock);
    else if (changed.wait_until(lock, until) == std::cv_status::timeout) {
      r = result();
      break;
    }
    r = result();
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

}  // namespace sdma::emulator
