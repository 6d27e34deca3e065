// SPDX-License-Identifier: MIT
// What the kernel driver reports to a KFD device: interrupts of queues, VM faults, resets. Also the words of signals.
#include "../busy_wait.hpp"
#include "node.hpp"

#include "sdma/sync/wait.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

namespace sdma::inline v0::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kLongest = 1000;  // ms; a longer wait calls the driver several times
constexpr std::size_t kMaxFaults = 4096;

/// The milliseconds that are left, rounded up, at most kLongest.
std::uint32_t left(Deadline d) noexcept {
  const auto now = Deadline::Clock::now();
  if (d.at <= now) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min(d.at - now, Deadline::Clock::duration(1h)));
  return static_cast<std::uint32_t>(std::min<std::int64_t>(ms.count(), kLongest));
}

/// ok, timed_out, or stopped: the driver no longer knows one of the events.
Errc wait_for(int fd, std::span<kfd::EventData> events, std::uint32_t ms) noexcept {
  kfd::WaitEvents a{.events = reinterpret_cast<std::uint64_t>(events.data()),
                    .count = static_cast<std::uint32_t>(events.size()),
                    .timeout_ms = ms};
  if (kfd::call(fd, kfd::Nr::wait_events, a) != 0) return Errc::stopped;
  return a.result == kfd::kWaitComplete ? Errc::ok : Errc::timed_out;
}

}  // namespace

// --- Signals ---------------------------------------------------------------------------------------------------------

Result<SignalMemory, Diagnostic> KfdNode::create_signal(const SignalRequest& r) {
  if (!in_opening_process()) return forked_error("create_signal");
  const auto taken = take_signal(r.where);
  if (!taken) return taken.error();
  const auto& [id, slot] = *taken;
  const Signal signal{.word = slot.word, .va = slot.va, .sleep = busy_wait};
  signal.set(r.value);
  if (r.where) (void)flush_host_writes(*r.where);
  hold();
  return SignalMemory(Lease(give_back<&KfdNode::free_signal>, this, id), signal);
}

// --- Events ----------------------------------------------------------------------------------------------------------

Result<Event, Diagnostic> KfdNode::create_event() {
  if (!in_opening_process()) return forked_error("create_event");
  thunk::EventDescriptor d{.type = thunk::kEventSignal, .node = gpus_.front().thunk_node};
  thunk::Event* e = nullptr;
  const std::lock_guard lock(memory_);
  if (const auto s = thunk_.create_event(&d, false, false, &e); s != thunk::kSuccess)
    return Diagnostic{.where = "create_event",
                      .message = std::string("the driver could not create an event: ") + thunk::message(s),
                      .hint = "a process can have about 4000: free unused ones"};
  events_.emplace(e->id, e);
  hold();
  return Event(Lease(give_back<&KfdNode::free_event>, this, e->id), GpuVa{e->mailbox}, e->id);
}

void KfdNode::free_event(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  const auto at = events_.find(static_cast<std::uint32_t>(id));
  if (at == events_.end()) return;
  (void)thunk_.destroy_event(at->second);
  events_.erase(at);
}

Errc KfdNode::wait_event(std::uint32_t id, Deadline d) noexcept {
  if (!in_opening_process()) return Errc::stopped;
  kfd::EventData event;
  event.event_id = id;
  for (;;) {
    const auto e = wait_for(fd_, {&event, 1}, left(d));
    if (e == Errc::stopped) return Errc::bad_argument;
    if (e == Errc::ok || d.passed()) return e;
  }
}

// --- Faults ----------------------------------------------------------------------------------------------------------

std::optional<Diagnostic> KfdNode::watch_faults() {
  for (auto [type, event] :
       {std::pair(thunk::kEventMemory, &memory_event_), std::pair(thunk::kEventHwException, &exception_event_)}) {
    thunk::EventDescriptor d{.type = type, .node = gpus_.front().thunk_node};
    if (const auto s = thunk_.create_event(&d, false, false, event); s != thunk::kSuccess)
      return Diagnostic{.where = "hsaKmtCreateEvent",
                        .message = std::string("faults cannot be watched: ") + thunk::message(s),
                        .hint = "HSAKMT_DEBUG_LEVEL=7 makes libhsakmt print more"};
  }
  return {};
}

std::optional<GpuId> KfdNode::gpu_of(std::uint32_t gpu_id) const noexcept {
  for (std::uint32_t g = 0; g < gpus_.size(); ++g)
    if (gpus_[g].gpu_id == gpu_id) return GpuId{g};
  return {};
}

void KfdNode::keep(const Fault& f) noexcept {
  {
    const std::lock_guard lock(faults_mutex_);
    if (!first_fault_) first_fault_ = f;
    if (auto& of_gpu = gpus_[f.gpu.value].fault; !of_gpu) of_gpu = f;
    if (faults_.size() < kMaxFaults) faults_.push_back(f);
    faulted_.store(true, std::memory_order_release);
  }
  fault_came_.notify_all();
}

Errc KfdNode::look_for_faults(Deadline d) noexcept {
  kfd::EventData events[2];
  events[0].event_id = memory_event_->id;
  events[1].event_id = exception_event_->id;
  const auto e = wait_for(fd_, events, left(d));
  if (e != Errc::ok) return e;
  const auto& m = events[0].memory;
  if (const auto g = m.gpu_id != 0 ? gpu_of(m.gpu_id) : std::nullopt)
    keep({.kind = m.read_only != 0 ? FaultKind::read_only : FaultKind::unmapped,
          .access = m.read_only != 0 ? Access::write : Access::read_write,
          .anonymous = true,
          .gpu = *g,
          .engine = kUnknownEngine,
          .va = GpuVa{m.va}});
  const auto& x = events[1].exception;
  if (const auto g = x.gpu_id != 0 ? gpu_of(x.gpu_id) : std::nullopt)
    keep({.kind = FaultKind::reset, .anonymous = true, .gpu = *g, .engine = kUnknownEngine});
  return Errc::ok;
}

Result<Fault> KfdNode::wait_fault(Deadline d) noexcept {
  if (!in_opening_process()) return Errc::stopped;
  std::unique_lock lock(faults_mutex_);
  for (bool looked = false;;) {
    if (!faults_.empty()) {
      const auto f = faults_.front();
      faults_.pop_front();
      return f;
    }
    if (looked && d.passed()) return Errc::timed_out;
    looked = true;
    if (waiter_in_driver_) {
      // One thread waits in the driver for all threads, and wakes the others.
      fault_came_.wait_until(lock, std::min(d.at, Deadline::in(1h).at));
      continue;
    }
    waiter_in_driver_ = true;
    lock.unlock();
    const auto e = look_for_faults(d);
    lock.lock();
    waiter_in_driver_ = false;
    fault_came_.notify_all();  // one of the others takes over
    if (e == Errc::stopped) return e;
  }
}

std::optional<Fault> KfdNode::fault(GpuId g) noexcept {
  if (!in_opening_process()) return {};
  (void)look_for_faults(Deadline{});
  if (!faulted_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(faults_mutex_);
  if (g.value < gpus_.size() && gpus_[g.value].fault) return gpus_[g.value].fault;
  return first_fault_;
}

}  // namespace sdma::inline v0::detail
