// SPDX-License-Identifier: MIT
#include "cuda_queue.hpp"

#include "cuda_node.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/sync/wait.hpp"

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
namespace {

using namespace std::chrono_literals;

/// How long a wait may look as if CUDA compared differently before it counts as one.
constexpr auto kSuspect = 100ms;
/// How long a stream makes no progress at a poll before its queue's destruction leaves it.
constexpr auto kStuck = 100ms;
constexpr auto kLongest = 10s;

PipelineConfig config(AddressSpace::Reader& reader, const QueueParts& p) noexcept {
  return {
      .ring = p.ring.dwords, .rptr = p.ring.rptr, .reader = &reader, .gpu = p.gpu, .engine = p.engine, .queue = p.id};
}

}  // namespace

CudaQueue::CudaQueue(Node& n, PhysicalGpu& g, AddressSpace& space, const QueueParts& q, const CommandParts& c)
    : node_(n),
      gpu_(g),
      parts_(q),
      reader_(space, q.gpu),
      published_(q.ring),
      front_(config(reader_, q)),
      commands_(g, c) {}

CudaQueue::~CudaQueue() = default;

/// If another thread issues packets of this queue, that thread also issues those of the new doorbell. If it only reads
/// the queue's state, the device's thread does. In the child of a fork, nothing executes.
void CudaQueue::ring() noexcept {
  if (!node_.in_opening_process()) return;
  rung_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const auto seen = rung_.load(std::memory_order_seq_cst);
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return node_.wake_for_queue();
      if (advance(Who::publisher) == Progress::waiting) node_.wake_for_queue();
    }
    if (rung_.load(std::memory_order_seq_cst) == seen) return;
  }
}

Progress CudaQueue::step(Who who) noexcept {
  auto p = Progress::idle;
  for (;;) {
    const auto seen = rung_.load(std::memory_order_seq_cst);
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return Progress::waiting;  // a publisher is here, and issues what it can: look again later
      p = advance(who);
    }
    if (rung_.load(std::memory_order_seq_cst) == seen) return p;
  }
}

/// Issues packets until there is none, or the first has to wait. Hold the lock.
Progress CudaQueue::advance(Who who) noexcept {
  if (stopped_) return Progress::stopped;
  if (gpu_.error() != kSuccess) {
    stopped_ = true;
    node_.gpu_failed(gpu_);
    return Progress::stopped;
  }
  if (only_thread_ && who != Who::thread) return Progress::waiting;
  const InContext here(gpu_);
  who_ = who;
  const auto before = front_.read();
  auto result = Progress::idle;
  if (who == Who::thread) {
    take_interrupts();
    watch_polls();
  }
  {
    const AddressSpace::Reader::Section section(reader_);
    bool good = front_.doorbell(published_.position(), nullptr);
    needs_thread_ = only_thread_ = false;
    while (good && front_.load()) {
      outcome_ = Outcome::done;
      const auto issued = issue_current();
      if (issued == Issued::refused) {
        auto f = front_.fault_of(front_.current(), why_.kind);
        f.rule = why_.rule;
        f.va = why_.va;
        commands_.send();
        issued_.store(commands_.issued(), std::memory_order_release);
        stop(f);
        return Progress::stopped;
      }
      if (issued == Issued::room || issued == Issued::thread) {
        needs_thread_ = true;
        only_thread_ = issued == Issued::thread;
        result = Progress::waiting;
        break;
      }
      at_ = 0;
      good = front_.consume(outcome_);
      if (gpu_.error() != kSuccess) break;
    }
    commands_.send();
    issued_.store(commands_.issued(), std::memory_order_release);
    if (const auto& f = front_.fault()) {
      stop(f);
      return Progress::stopped;
    }
  }
  if (gpu_.error() != kSuccess) return advance(who);
  if (parts_.ring.rptr && front_.read() != before) {
    order::Native::store(parts_.ring.rptr, front_.read(), std::memory_order_release);
    if (result == Progress::idle || who == Who::thread) result = busier(result, Progress::progressed);
  }
  if (interrupts_.count != 0 || (who == Who::thread && waits_.count != 0)) result = busier(result, Progress::waiting);
  urgent_.store(needs_thread_ || interrupts_.count != 0, std::memory_order_relaxed);
  full_.store(needs_thread_ && !only_thread_ && interrupts_.count == 0, std::memory_order_relaxed);
  return result;
}

void CudaQueue::stop(const Fault& f) noexcept {
  stopped_ = true;
  if (parts_.ring.rptr) order::Native::store(parts_.ring.rptr, front_.read(), std::memory_order_release);
  node_.report(f);
}

void CudaQueue::take_interrupts() noexcept {
  while (interrupts_.count != 0 && commands_.finished(interrupts_.front().command)) {
    node_.trap(interrupts_.front().context);
    interrupts_.pop();
  }
}

void CudaQueue::drop_met_waits() noexcept {
  for (; waits_.count != 0 && commands_.finished(waits_.front().command); suspect_since_ = {}) waits_.pop();
}

/// A wait that CUDA compares cyclically, and whose word is so far ahead that sDMA's compare would be satisfied and
/// CUDA's is not, never ends: a fault is better.
void CudaQueue::watch_polls() noexcept {
  drop_met_waits();
  if (waits_.count == 0) return;
  commands_.report();
  const auto& w = waits_.front();
  const auto value = w.word ? atomic_ref(*const_cast<std::uint32_t*>(w.word)).load(std::memory_order_acquire) : 0;
  if (w.equal || !w.word || value - w.bound <= 0x7fffffff || value < w.bound) {
    suspect_since_ = {};
    return;
  }
  const auto now = Deadline::Clock::now();
  if (suspect_since_ == Deadline::Clock::time_point{}) {
    suspect_since_ = now;
  } else if (now - suspect_since_ > kSuspect) {
    Fault f{.kind = FaultKind::unsupported,
            .gpu = parts_.gpu,
            .engine = parts_.engine,
            .queue = parts_.id,
            .position = front_.read(),
            .va = GpuVa{reinterpret_cast<std::uintptr_t>(w.word)}};
    f.rule = "a polled word jumped by 2^31 or more, and CUDA compares cyclically";
    stop(f);
  }
}

bool CudaQueue::held_up() noexcept {
  if (waits_.count == 0) return false;
  const auto& w = waits_.back();
  if (!w.word || !on_host(GpuVa{reinterpret_cast<std::uintptr_t>(w.word)}, Access::read)) return true;
  const auto value = atomic_ref(*const_cast<std::uint32_t*>(w.word)).load(std::memory_order_acquire);
  return w.equal ? value != w.bound : static_cast<std::int32_t>(value - w.bound) < 0;
}

bool CudaQueue::retire() noexcept {
  const std::lock_guard lock(mutex_);
  const bool failed = gpu_.error() != kSuccess;
  stopped_ = true;
  if (failed) return true;  // nothing executes any more
  const InContext here(gpu_);
  commands_.report();
  const auto end = Deadline::in(kLongest);
  auto last = commands_.progress();
  auto since = Deadline::Clock::now();
  for (Backoff b; !commands_.finished(commands_.issued()) && !commands_.idle();) {
    if (gpu_.error() != kSuccess) return true;
    const auto now = Deadline::Clock::now();
    if (const auto p = commands_.progress(); p != last) {
      last = p;
      since = now;
    }
    drop_met_waits();
    bool unmet = false;
    for (auto w = waits_; w.count != 0; w.pop()) {
      if (!w.front().word) {
        unmet = true;
        continue;
      }
      const auto value = atomic_ref(*const_cast<std::uint32_t*>(w.front().word)).load(std::memory_order_acquire);
      unmet = unmet ||
              (w.front().equal ? value != w.front().bound : static_cast<std::int32_t>(value - w.front().bound) < 0);
    }
    if ((unmet && now - since > kStuck) || !b.step(end)) return false;
  }
  return true;
}

// --- What packets share ----------------------------------------------------------------------------------------------

bool CudaQueue::thread_is_next() noexcept {
  if (!commands_.finished(commands_.issued())) commands_.report();
  return who_ == Who::thread && commands_.finished(commands_.issued());
}

bool CudaQueue::has_finished(std::uint64_t command) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  if (gpu_.error() != kSuccess || commands_.finished(command)) return true;
  const InContext here(gpu_);
  return commands_.idle();
}

Issued CudaQueue::refuse(std::string_view reason) noexcept {
  why_ = {.kind = FaultKind::unsupported};
  why_.rule = reason;
  return Issued::refused;
}

bool CudaQueue::on_host(GpuVa va, Access a) noexcept { return reader_.owner(va, a) == Mapping::kHost; }

bool CudaQueue::one_allocation(GpuVa va, std::uint64_t bytes, Access a) noexcept {
  return reader_.at(va, bytes, a) != nullptr;
}

}}}  // namespace sdma::v0_3::detail::cuda
