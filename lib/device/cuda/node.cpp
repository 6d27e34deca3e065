// SPDX-License-Identifier: MIT
#include "node.hpp"

#include "../busy_wait.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace sdma::inline v0::detail::cuda {
namespace {

using namespace std::chrono_literals;
using Rest = Worker::Rest;

constexpr Worker::Pace kPace{.spin = 200us, .first_nap = 20us, .longest_nap = 10ms, .pauses = 8};
constexpr std::chrono::nanoseconds kUrgentNap = 50us;  // at most, while a queue waits for the thread
constexpr auto kLookForErrors = 5ms;

std::vector<PhysicalGpu*> for_each_logical(const std::vector<CudaGpu>& gpus,
                                           const std::vector<PhysicalGpu*>& physical) {
  std::vector<PhysicalGpu*> out;
  for (std::size_t g = 0; g < gpus.size(); ++g) out.push_back(physical[g % physical.size()]);
  return out;
}

/// A parked stream still writes the words of its queue.
void keep_for_ever(std::unique_ptr<CudaQueue> q) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<CudaQueue>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(q));
}

}  // namespace

Node::Node(const CudaOptions& o, const Driver& d, Topology t, std::vector<CudaGpu> gpus,
           std::vector<PhysicalGpu*> physical)
    : options_(o),
      driver_(d),
      topology_(std::move(t)),
      gpus_(std::move(gpus)),
      physical_(std::move(physical)),
      memory_pool_(space_, for_each_logical(gpus_, physical_)),
      worker_(*this, kPace),
      failed_(physical_.size()) {}

Node::~Node() {
  stop();
  for (auto& e : entries_)
    if (e.parked) keep_for_ever(std::move(e.queue));
  if (parked() != 0) memory_pool_.keep();
}

void Node::stop() noexcept {
  worker_.stop();
  const std::lock_guard creation(creation_);
  for (auto& e : entries_) retire(e);
}

// --- Memory, signals, events -----------------------------------------------------------------------------------------

Result<Node::NewBlock, Diagnostic> Node::allocate_block(const MemoryRequest& r) {
  if (!in_opening_process()) return forked_error("allocate");
  if (auto d = refuse(r, topology_)) return *d;
  const auto b = memory_pool_.allocate(r, place_of(r));
  if (!b) return b.error();
  return NewBlock{.id = b->first, .va = b->second.va, .host = b->second.host};
}

Result<Memory, Diagnostic> Node::adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus) {
  if (!in_opening_process()) return forked_error("adopt");
  const auto b = memory_pool_.adopt(static_cast<std::byte*>(pointer), bytes, gpus);
  if (!b) return b.error();
  hold();
  return Memory(Lease(give_back<&Node::free_block>, this, b->first), b->second.va, bytes, b->second.host);
}

void Node::free_block(std::uint64_t id) noexcept {
  memory_pool_.free(id, [this, id, asked = false, uses = std::vector<Use>{}]() mutable {
    if (!asked) uses = this->uses(id);  // after the mapping is gone: no later command can touch it
    asked = true;
    return in_use(uses);
  });
}

/// The commands that may touch a block whose mapping has just gone.
std::vector<Node::Use> Node::uses(std::uint64_t block) {
  std::vector<Use> out;
  const std::lock_guard lock(worker_);
  for (const auto& e : entries_)
    if (!e.parked || block < e.blocks_before) out.push_back({e.queue->parts().id, e.queue->issued()});
  return out;
}

bool Node::in_use(std::vector<Use>& uses) noexcept {
  const std::lock_guard lock(worker_);
  std::erase_if(uses, [&](const Use& u) {
    const auto at =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.queue->parts().id == u.queue; });
    return at == entries_.end() || (!at->parked && (at->retired || at->queue->has_finished(u.command)));
  });
  return !uses.empty();
}

Result<SignalMemory, Diagnostic> Node::create_signal(const SignalRequest& r) {
  if (!in_opening_process()) return forked_error("create_signal");
  if (auto d = refuse(MemoryRequest{.where = r.where, .bytes = sizeof r.value}, topology_)) return *d;
  const auto taken = take_signal(std::nullopt);  // the host sees only its own memory
  if (!taken) return taken.error();
  const auto& [id, s] = *taken;
  const Signal signal{.word = s.word, .va = s.va, .sleep = busy_wait, .context = this, .wake = on_host_store};
  signal.set(r.value, Caching::write_back);
  hold();
  return SignalMemory(Lease(give_back<&Node::free_signal>, this, id), signal);
}

/// A parked stream may still wait for the word, or store it: then it is never used again.
void Node::free_signal(std::uint64_t id) noexcept {
  if (parked() == 0) SharedNode::free_signal(id);
}

/// Streams see the word by themselves; the thread may be asleep.
void Node::on_host_store(void* node, GpuVa) noexcept {
  auto& n = *static_cast<Node*>(node);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (n.urgent_.load(std::memory_order_relaxed) != 0) n.wake();
}

Errc Node::flush(GpuId g) noexcept { return in_opening_process() ? memory_pool_.flush(g) : Errc::stopped; }
Errc Node::peek(GpuVa va, std::span<std::byte> out) noexcept {
  return in_opening_process() ? memory_pool_.peek(va, out) : Errc::stopped;
}

/// The GPU's clock lies between two readings of the host's. The shortest of three tries counts.
Result<Clock> Node::clock(GpuId g) noexcept {
  if (g.value >= gpus_.size()) return Errc::bad_argument;
  if (!in_opening_process()) return Errc::stopped;
  auto& gpu = physical(g);
  const std::lock_guard own(gpu.control());
  auto* const word = reinterpret_cast<std::uint64_t*>(gpu.bounce(0));
  Clock best;
  auto shortest = Deadline::Clock::duration::max();
  for (int i = 0; i < 3; ++i) {
    const auto before = Deadline::Clock::now();
    if (!gpu.stamp_now(word, Deadline::in(10s))) return Errc::stopped;
    const auto took = Deadline::Clock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    best.host = before + took / 2;
    best.ticks = atomic_ref(*word).load(std::memory_order_acquire);
  }
  return best;
}

// --- Faults ----------------------------------------------------------------------------------------------------------

void Node::gpu_failed(PhysicalGpu& gpu) noexcept {
  for (std::size_t i = 0; i < physical_.size(); ++i) {
    if (physical_[i] != &gpu || failed_[i].exchange(true)) continue;
    Fault f{.kind = FaultKind::driver_error,
            .anonymous = true,
            .gpu = GpuId{static_cast<std::uint32_t>(i)},
            .engine = kUnknownEngine};
    f.rule = driver_.name_of(gpu.error());
    faults_.add(f);
  }
}

std::optional<Fault> Node::fault(const Queue& q) const noexcept {
  if (!in_opening_process()) return {};
  if (auto f = faults_.of(q.id())) return f;
  const auto& gpu = physical(q.gpu());
  if (gpu.error() == kSuccess) return {};
  Fault f{.kind = FaultKind::driver_error, .anonymous = true, .gpu = q.gpu(), .engine = kUnknownEngine};
  f.rule = driver_.name_of(gpu.error());
  return f;
}

// --- The thread ------------------------------------------------------------------------------------------------------

Progress Node::round() noexcept {
  ticket_ = parking_.ticket();
  auto result = Progress::idle;
  std::uint32_t urgent = 0;
  const auto now = Deadline::Clock::now();
  const bool look = now - looked_ > kLookForErrors;
  if (look) looked_ = now;
  for (auto& e : entries_) {
    if (e.retired) continue;
    if (look) e.queue->look_for_errors();
    result = busier(result, e.queue->step(Who::thread));
    urgent += e.queue->urgent();
  }
  urgent_.store(urgent, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before words are loaded again: see on_host_store
  return result == Progress::stopped ? Progress::idle : result;
}

bool Node::spin(bool fresh) noexcept { return fresh && urgent_.load(std::memory_order_relaxed) != 0; }

Rest Node::rest(Progress p, std::chrono::nanoseconds nap) noexcept {
  const bool urgent = urgent_.load(std::memory_order_relaxed) != 0;
  const auto scan = options_.scan_interval.count() > 0 ? Deadline::in(options_.scan_interval) : Deadline::in(1h);
  if (p == Progress::idle) {
    parking_.sleep(ticket_, scan);
    return Rest::again;
  }
  parking_.sleep(ticket_, Deadline::in(urgent ? std::min(nap, kUrgentNap) : nap));
  return Rest::slept;
}

}  // namespace sdma::inline v0::detail::cuda
