// SPDX-License-Identifier: MIT
// The queues of a software node: creation, destruction, and the thread that finds doorbells rung without `wake`.
#include "sdma/core/atomic_ref.hpp"
#include "soft_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <system_error>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using namespace std::chrono_literals;

// --- Hooks of a pipeline. `context` is the queue. All run on the engine's thread.
// --------------------------------------

void on_trap(void* context, std::uint64_t, std::uint32_t id) noexcept {
  static_cast<SoftQueue*>(context)->engine->node().trap(id);
}

void on_fault(void* context, const Fault& f) noexcept {
  auto& q = *static_cast<SoftQueue*>(context);
  if (q.trace) q.trace->fault(q.lane, trace::now(), f.position, q.trace->text(name(f.kind)), f.va);
  q.engine->node().report(f);
}

void on_begin(void* context, const PacketEvent& e) noexcept {
  auto& q = *static_cast<SoftQueue*>(context);
  if (e.depth != 0) return;
  const auto g = e.view.info ? e.view.info->generation : kDefaultGeneration;
  q.trace->packet_begin(q.lane, trace::now(), e.position, e.view.dwords, g);
}

/// Records the current value of the word that a FENCE or an ATOMIC has changed.
void trace_signal(SoftQueue& q, GpuVa va, std::uint64_t ns) noexcept {
  auto& reader = q.engine->reader();
  if (auto* p = va.value % 8 == 0 ? reader.at(va, 8, Access::read) : nullptr)
    q.trace->signal(q.lane, ns, va, atomic_ref(*reinterpret_cast<std::uint64_t*>(p)).load(std::memory_order_relaxed));
  else if (auto* half = reader.at(va, 4, Access::read))
    q.trace->signal(q.lane, ns, va,
                    atomic_ref(*reinterpret_cast<std::uint32_t*>(half)).load(std::memory_order_relaxed));
}

void on_end(void* context, const PacketEvent& e) noexcept {
  auto& q = *static_cast<SoftQueue*>(context);
  const auto ns = trace::now();
  if (e.depth == 0) q.trace->packet_end(q.lane, ns, e.position);
  if (e.view.is<Fence>()) trace_signal(q, decode<Fence>(e.view.dwords).addr, ns);
  if (e.view.is<Atomic>()) trace_signal(q, decode<Atomic>(e.view.dwords).addr, ns);
}

PipelineHooks hooks_of(SoftQueue& q) noexcept {
  PipelineHooks h{.context = &q, .trap = on_trap, .fault = on_fault};
  if (q.trace) {
    h.begin = on_begin;
    h.end = on_end;
  }
  return h;
}

}  // namespace

/// Allocates ring, rptr, wptr and doorbell the way the kernel driver does: each in separate memory.
Result<RingMemory, Diagnostic> SoftNode::make_ring(const QueueRequest& r, SoftQueue& q) {
  std::array<std::byte*, 4> at{};
  const std::uint64_t bytes[] = {r.ring_bytes, kPage, kPage, kPage};
  for (std::size_t i = 0; i < at.size() - (r.watch_wptr ? 1 : 0); ++i) {
    const auto m =
        allocate_block({.bytes = bytes[i], .gpus = std::uint64_t{1} << r.gpu.value, .purpose = Purpose::packets});
    if (!m) {
      for (const auto id : q.blocks) free_block(id);
      return m.error();
    }
    q.blocks.push_back(m->id);
    at[i] = m->host;
  }
  const auto word = [](std::byte* p) { return reinterpret_cast<std::uint64_t*>(p); };
  return RingMemory{.dwords = {reinterpret_cast<std::uint32_t*>(at[0]), static_cast<std::size_t>(r.ring_bytes / 4)},
                    .rptr = word(at[1]),
                    .wptr = word(at[2]),
                    .doorbell = word(at[3]),
                    .caching = Caching::write_back,
                    .on_doorbell =
                        [](void* engine, std::uint64_t) noexcept {
                          auto& e = *static_cast<SoftEngine*>(engine);
                          e.node().on_doorbell(e);
                        },
                    .generation = topology_.gpus[r.gpu.value].generation()};
}

namespace {

class QueueAgent final : public Baton::Agent {
 public:
  QueueAgent(SoftEngine& e, SoftQueue& q) noexcept : engine_(e), queue_(q) {}
  bool step() noexcept override { return engine_.turn(queue_); }
  bool asleep() noexcept override { return queue_.pipeline->asleep(); }
  void awaken() noexcept override { queue_.pipeline->awaken(); }

 private:
  SoftEngine& engine_;
  SoftQueue& queue_;
};

}  // namespace

std::vector<std::unique_ptr<Baton::Agent>> SoftNode::hold_queues() {
  held_.store(true, std::memory_order_release);
  std::vector<std::unique_ptr<Baton::Agent>> all;
  const std::lock_guard lock(creation_);
  for (const auto& e : engines_)
    for (auto* const q : e ? e->queues() : std::vector<SoftQueue*>())
      all.push_back(std::make_unique<QueueAgent>(*e, *q));
  return all;
}

void SoftNode::let_go() noexcept {
  held_.store(false, std::memory_order_release);
  const std::lock_guard lock(creation_);
  for (const auto& e : engines_)
    if (e) e->wake();
}

void SoftNode::on_doorbell(SoftEngine& e) noexcept {
  if (is_held()) return;
  e.wake();
  if (!adversarial()) return;
  rung_.store(true, std::memory_order_relaxed);
  delay_host();
}

SoftEngine& SoftNode::engine(GpuId g, EngineId e) {
  const auto index = g.value * std::size_t{64} + e.value;
  auto& at = engines_[index];
  if (!at) {
    at = std::make_unique<SoftEngine>(*this, g, e);
    engine_of_[index].store(at.get(), std::memory_order_release);
  }
  return *at;
}

void SoftNode::map_queues(GpuId g) noexcept {
  for (std::size_t e = 0; e < 64; ++e)
    if (auto& engine = engines_[g.value * std::size_t{64} + e]) engine->map_all();
}

/// The engine that the request names; otherwise, among the engines of the requested kind, the first of those with the
/// lowest free slot.
EngineId SoftNode::choose(const QueueRequest& r) {
  if (r.pick == EnginePick::exact) return r.engine;
  auto left = engines_for(r.pick, topology_.gpus[r.gpu.value]);
  EngineId best{static_cast<std::uint32_t>(std::countr_zero(left))};
  for (left &= left - 1; left != 0; left &= left - 1)
    if (const EngineId e{static_cast<std::uint32_t>(std::countr_zero(left))};
        engine(r.gpu, e).free_slot() < engine(r.gpu, best).free_slot())
      best = e;
  return best;
}

Result<Queue, Diagnostic> SoftNode::create_queue(const QueueRequest& r) {
  if (!in_opening_process()) return forked_error("create_queue");
  if (auto d = refuse(r, topology_)) return *d;
  const auto where = place_of(r);
  std::lock_guard lock(creation_);
  const auto chosen = choose(r);
  auto& e = engine(r.gpu, chosen);
  auto q = std::make_unique<SoftQueue>();
  q->slot = e.free_slot();
  const auto slots = topology_.gpus[r.gpu.value].queues_per_engine;
  if (slots == 0)
    return Diagnostic{.where = where,
                      .message = fmt::format("it is unknown how many queues an engine of gpu{} serves", r.gpu.value),
                      .hint = "set Gpu::queues_per_engine, in a file \"queues_per_engine\""};
  if (q->slot >= slots)
    return Diagnostic{.where = where,
                      .message = fmt::format("all {} queues of the engine are in use", slots),
                      .hint = "destroy one, or share a queue between producers: Ring<Producers::many>"};
  auto ring = make_ring(r, *q);
  if (!ring) return ring.error();
  ring->on_doorbell_context = &e;
  {
    std::lock_guard ids(memory_);
    q->id = next_id_++;
  }
  q->ring = *ring;
  q->published.emplace(*ring);
  if (adversarial()) q->nap.emplace(options_.seed + q->id, kQueueNaps);
  q->trace = options_.trace;
  if (q->trace)
    q->lane =
        q->trace->lane(trace::queue_lane(r.gpu, chosen, r.name.empty() ? fmt::format("queue {}", q->slot) : r.name));
  q->pipeline = std::make_unique<Pipeline>(PipelineConfig{.ring = ring->dwords,
                                                          .rptr = ring->rptr,
                                                          .reader = &e.reader(),
                                                          .gpu = r.gpu,
                                                          .engine = chosen,
                                                          .queue = q->id,
                                                          .generation = topology_.gpus[r.gpu.value].generation(),
                                                          .ordering = options_.ordering,
                                                          .seed = options_.seed + q->id,
                                                          .linger = adversarial() ? 16u : 0u,
                                                          .sleeps = adversarial(),
                                                          .state = &e.state(),
                                                          .hooks = hooks_of(*q)});
  if (q->trace) q->trace->queue_created(q->lane, trace::now(), r.ring_bytes);

  const auto id = q->id;
  const auto blocks = q->blocks;
  queues_.emplace(id, &e);
  const auto no_thread = [&](const char* what) {
    queues_.erase(id);
    for (const auto b : blocks) free_block(b);
    return Diagnostic{.where = where,
                      .message = fmt::format("cannot start the thread of {}", what),
                      .hint = "raise the thread limit (ulimit -u)"};
  };
  if (options_.scan_interval.count() > 0 && !scan_thread_.joinable()) {
    try {
      scan_thread_ = std::thread([this] { scan(); });
    } catch (const std::system_error&) {
      return no_thread("the doorbell scan");
    }
  }
  if (!e.add(std::move(q))) return no_thread("the engine");
  map_queues(r.gpu);
  scan_parking_.wake();
  hold();
  return Queue(Lease(give_back<&SoftNode::destroy_queue>, this, id), *ring, r.gpu, chosen);
}

void SoftNode::destroy_queue(std::uint64_t id) noexcept {
  std::unique_ptr<SoftQueue> q;
  {
    std::lock_guard lock(creation_);
    const auto at = queues_.find(id);
    if (at == queues_.end()) return;
    auto& e = *at->second;
    queues_.erase(at);
    q = e.remove(id);
    if (q) map_queues(e.gpu());
  }
  if (!q) return;
  if (q->trace) q->trace->queue_destroyed(q->lane, trace::now(), q->pipeline->position());
  q->pipeline.reset();
  faults_.forget(id);
  for (const auto b : q->blocks) free_block(b);
}

/// Checks for doorbells that were rung without `wake`: often after it has found one, otherwise at growing intervals,
/// and not at all while there are no queues.
void SoftNode::scan() noexcept {
  constexpr std::chrono::nanoseconds kOften = 1ms;
  const std::chrono::nanoseconds longest = options_.scan_interval;
  auto interval = std::min(kOften, longest);
  for (;;) {
    // Before `scan_ends_`: otherwise the wake-up of `stop` could come between the two, and would be lost.
    const auto ticket = scan_parking_.ticket();
    if (scan_ends_.load(std::memory_order_acquire)) return;
    bool any = false, found = false;
    {
      std::lock_guard lock(creation_);
      any = !queues_.empty();
      for (auto& e : engines_)
        if (e) found = e->scan_doorbells() || found;
    }
    interval = found ? std::min(kOften, longest) : std::min(interval * 2, longest);
    scan_parking_.sleep(ticket, any ? Deadline::in(interval) : Deadline::in(1h));
  }
}

std::vector<EngineCounters> SoftNode::counters() const {
  std::vector<EngineCounters> out;
  if (!in_opening_process()) return out;
  std::lock_guard lock(creation_);
  for (const auto& e : engines_)
    if (e) out.push_back(e->counters());
  return out;
}

}}}  // namespace sdma::v0_3::detail
