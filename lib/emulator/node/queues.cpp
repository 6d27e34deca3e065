// SPDX-License-Identifier: MIT
#include "queues.hpp"

#include "../node_options.hpp"
#include "../queues/aql.hpp"
#include "../queues/pm4_queue.hpp"
#include "gpu_vm.hpp"
#include "user.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace sdma::emulator {
namespace {

constexpr int kNotSupported = 524;  ///< the kernel's ENOTSUPP, which has no name in user space
constexpr std::uint32_t kFirstComputeDoorbell = 512, kComputeQueues = 512;
constexpr std::uint64_t kRingAlignment = 256;

/// What a caller asks of a queue's ring, as CREATE_QUEUE and UPDATE_QUEUE both check and change it.
struct Wish {
  std::uint64_t ring{};
  std::uint32_t bytes{};
  bool active{};  ///< the queue may run
  int error{};
};
template <class Args> Wish wish_of(const Args& a) {
  const auto refused = [](int error) { return Wish{.error = error}; };
  const auto percentage = a.percentage & 0xff;
  if (percentage > kfd::kMaxPercentage || a.priority > kfd::kMaxPriority) return refused(EINVAL);
  if (a.ring != 0 && !plausible(a.ring, 8)) return refused(EFAULT);
  if (a.ring_bytes != 0 && !std::has_single_bit(a.ring_bytes)) return refused(EINVAL);
  // A small ring is enlarged to the smallest that exists; no ring at all disables the queue.
  return {.ring = a.ring,
          .bytes = std::max(a.ring_bytes, kfd::kMinRingBytes),
          .active = a.ring != 0 && a.ring_bytes != 0 && percentage != 0};
}

}  // namespace

Queues::Queues(Memory& m, Events& e, Exceptions& x, const SysfsNode& n, Drive drive)
    : memory_(m), exceptions_(x), node_(n) {
  for (std::uint32_t g = 0; g < n.gpus.size(); ++g)
    servers_.push_back(std::make_unique<Server>(
        GpuId{g}, n.gpus[g].gpu_id, m.gpu(g).space, e, m.doorbell_page(g), m.activity(g),
        [this, g] { nudge_all_but(g); }, drive));
}

/// A poll of another GPU may wait for a value that this GPU has stored.
void Queues::nudge_all_but(std::uint32_t g) noexcept {
  for (std::uint32_t other = 0; other < servers_.size(); ++other)
    if (other != g) servers_[other]->nudge();
}

void Queues::show(std::uint32_t unmapped) noexcept {
  auto* to = memory_.shown_queues();
  if (!to) return;
  __atomic_store_n(&to->version, to->version + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  std::size_t n = 0;
  for (auto& [id, e] : queues_) {
    if (e.compute() || n == to->queues.size()) continue;
    if (unmapped == kAll || unmapped == e.gpu) {
      e.rptr_unmapped = __atomic_load_n(e.config.rptr, __ATOMIC_RELAXED);
      e.wptr_unmapped = __atomic_load_n(e.wptr, __ATOMIC_RELAXED);
    }
    to->queues[n++] = {.gpu = e.gpu,
                       .engine = e.engine,
                       .slot = e.slot,
                       .id = id,
                       .ring = e.ring,
                       .ring_bytes = e.ring_bytes,
                       .rptr_va = e.rptr_va,
                       .rptr = e.rptr_unmapped,
                       .wptr = e.wptr_unmapped};
  }
  to->count = n;
  __atomic_store_n(&to->version, to->version + 1, __ATOMIC_RELEASE);
}

/// A free slot, and its engine.
int Queues::place(const kfd::CreateQueue& a, Entry& e) {
  const auto& gpu = node_.topology.gpus[e.gpu];
  std::uint32_t first = 0, end = 0;
  switch (a.type) {
    case kfd::kQueueSdma: end = gpu.host_engines; break;
    case kfd::kQueueSdmaXgmi:
      first = gpu.host_engines;
      end = gpu.engines();
      break;
    case kfd::kQueueSdmaByEngine:
      if (a.sdma_engine_id >= gpu.engines()) return EINVAL;
      first = a.sdma_engine_id;
      end = first + 1;
      break;
    case kfd::kQueueCompute:
    case kfd::kQueueComputeAql: break;
    default: return kNotSupported;
  }
  e.type = a.type;
  const auto taken = [&](std::uint32_t engine, std::uint32_t slot) {
    for (const auto& [id, q] : queues_)
      if (&q != &e && q.gpu == e.gpu && q.compute() == e.compute() && q.engine == engine && q.slot == slot) return true;
    return false;
  };
  if (e.compute()) {
    e.engine = kComputeEngine.value;
    while (e.slot < kComputeQueues && taken(e.engine, e.slot)) ++e.slot;
    e.doorbell = kFirstComputeDoorbell + e.slot;
    return e.slot < kComputeQueues ? 0 : ENOMEM;
  }
  // Search slot by slot, so that queues spread over the engines first.
  for (e.slot = 0; e.slot < gpu.queues_per_engine; ++e.slot)
    for (e.engine = first; e.engine < end; ++e.engine)
      if (!taken(e.engine, e.slot) && memory_.shared().take(e.gpu, e.engine, e.slot)) {
        e.placed = true;
        e.doorbell = e.engine * gpu.queues_per_engine + e.slot;
        return 0;
      }
  return ENOMEM;
}

void Queues::leave(Entry& e) noexcept {
  if (e.placed) memory_.shared().give_back(e.gpu, e.engine, e.slot);
}

/// Pins the object, or the piece of GEM_VA, that the GPU sees as exactly these bytes; 0 bytes stand for any object.
int Queues::pin(Entry& e, std::uint64_t va, std::uint64_t bytes, bool* doubled) {
  auto* o = memory_.exactly(e.gpu, va & ~(kPage - 1), bytes);
  auto* vm = memory_.gpu(e.gpu).vm;
  auto* piece = o || !vm ? nullptr : vm->exactly(va & ~(kPage - 1), page_up(bytes));
  if ((!o || !o->host) && !piece) return EINVAL;
  e.pinned.push_back(o ? &o->pins : &piece->pins);
  ++*e.pinned.back();
  if (doubled) *doubled = o && o->doubled();
  return 0;
}

void Queues::unpin(Entry& e) {
  for (auto* pins : e.pinned) --*pins;
  e.pinned.clear();
}

/// `more`: bytes after the ring that belong to the same mapping, and that no queue of this node reads.
int Queues::ring_of(Entry& e, std::uint64_t va, std::uint64_t bytes, std::uint64_t more) {
  va -= va % kRingAlignment;  // the engine's register has no room for the low bits
  bool doubled = false;
  if (const int error = pin(e, va, bytes + more, &doubled)) return error;
  // One range for the engine: a doubled ring counts as its first half.
  auto* host = memory_.host(e.gpu, va, bytes);
  if (!host && doubled) host = memory_.host(e.gpu, va, bytes / 2);
  if (!host) return EINVAL;
  e.config.ring = {reinterpret_cast<std::uint32_t*>(host), bytes / 4};
  e.ring_bytes = bytes;
  return 0;
}

/// Unpins, at the end of a block, what an entry has pinned by then.
class Queues::Unpins {
 public:
  Unpins(Queues& all, Entry& e) noexcept : all_(all), entry_(e) {}
  ~Unpins() { all_.unpin(entry_); }
  Unpins(const Unpins&) = delete;
  Unpins& operator=(const Unpins&) = delete;

 private:
  Queues& all_;
  Entry& entry_;
};

/// An entry that goes at the end of a block, with what it has pinned, unless it is kept.
class Queues::Pending {
 public:
  Pending(Queues& all, std::map<std::uint32_t, Entry>::iterator at) noexcept : all_(all), at_(at) {}
  ~Pending() {
    if (kept_) return;
    all_.unpin(at_->second);
    all_.leave(at_->second);
    all_.queues_.erase(at_);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  Entry& entry() noexcept { return at_->second; }
  void keep() noexcept { kept_ = true; }

 private:
  Queues& all_;
  std::map<std::uint32_t, Entry>::iterator at_;
  bool kept_ = false;
};

/// Finds, checks and pins the memory of the queue.
int Queues::stand(const kfd::CreateQueue& a, std::uint64_t ring_bytes, Entry& e) {
  e.ring = a.ring;
  e.rptr_va = a.rptr;
  e.wptr_va = a.wptr;
  e.save_area = a.save_area;
  e.save_area_bytes = a.save_area_bytes;
  e.control_stack_bytes = a.control_stack_bytes;
  const bool metadata = a.type == kfd::kQueueComputeAql && options().kfd_minor >= kfd::kMetadataMinor;
  if (const int error = ring_of(e, a.ring, ring_bytes, metadata ? a.metadata_ring_bytes : 0)) return error;
  if (const int error = pin(e, a.wptr, kPage)) return error;
  if (const int error = pin(e, a.rptr, kPage)) return error;
  e.wptr = reinterpret_cast<std::uint64_t*>(memory_.host(e.gpu, a.wptr, 8));
  e.config.rptr = reinterpret_cast<std::uint64_t*>(memory_.host(e.gpu, a.rptr, 8));
  return e.wptr && e.config.rptr && a.wptr % 8 == 0 && a.rptr % 8 == 0 ? 0 : EINVAL;
}

std::uint64_t* Queues::doorbell(const Entry& e) const noexcept {
  return reinterpret_cast<std::uint64_t*>(memory_.doorbells(e.gpu)) + e.doorbell;
}

std::unique_ptr<HwQueue> Queues::make(const kfd::CreateQueue& a, Entry& e, std::uint32_t id) {
  auto& server = *servers_[e.gpu];
  const ComputeConfig compute{
      .id = id,
      .gpu = GpuId{e.gpu},
      .ring = e.config.ring,
      .doorbell = doorbell(e),
      .wptr = e.wptr,
      .rptr = e.config.rptr,
      .rptr_va = GpuVa{a.rptr},
      .save_area = GpuVa{runtime_ ? a.save_area : 0},
      .xccs = std::clamp(node_.gpus[e.gpu].xcc, 1u, 8u),
      .reader = &server.reader(kComputeEngine),
      .events = &server.events(),
      .exceptions = &exceptions_,
      .vm_fault = [&server](GpuVa va) { server.vm_fault(va, false); },
  };
  if (e.type == kfd::kQueueCompute) return std::make_unique<Pm4Queue>(compute);
  if (e.type == kfd::kQueueComputeAql) return std::make_unique<AqlQueue>(compute);
  auto& c = e.config;
  c.gpu = GpuId{e.gpu};
  c.engine = EngineId{e.engine};
  c.reader = &server.reader(c.engine);
  c.queue = id;
  c.generation = generation_of_target(options().gfx).value_or(kDefaultGeneration);
  c.ordering = options().ordering;
  c.indirect = options().indirect;
  c.seed = options().seed * 1024 + id;
  c.state = &server.state(c.engine);
  c.hooks = server.hooks(c.engine);
  return std::make_unique<SdmaQueue>(c, doorbell(e), e.wptr);
}

int Queues::create(kfd::CreateQueue& a) {
  const auto wish = wish_of(a);
  if (wish.error != 0) return wish.error;
  if (!plausible(a.rptr, 4) || !plausible(a.wptr, 4)) return EFAULT;
  const auto g = memory_.index(a.gpu_id);
  const bool by_engine = options().kfd_minor >= kfd::kByEngineMinor;
  if (a.type > (by_engine ? kfd::kQueueSdmaByEngine : kfd::kQueueSdmaXgmi)) return kNotSupported;
  if (g == memory_.gpus()) return EINVAL;
  if (!memory_.gpu(g).acquired) return ESRCH;
  std::uint32_t id = 0;
  for (auto it = queues_.begin(); it != queues_.end() && it->first == id; ++it) ++id;
  // Everything that may fail comes before the server gets the queue.
  Pending made(*this, queues_.try_emplace(id, Entry{.gpu = g}).first);
  auto& e = made.entry();
  if (const int error = place(a, e)) return error;
  if (id >= kfd::kMaxQueues) return ENOMEM;
  if (const int error = stand(a, wish.bytes, e)) return error;
  auto q = make(a, e, id);
  q->active = wish.active;
  auto& server = *servers_[e.gpu];
  server.make_room();
  {
    const Server::Unmapped none(server);
    server.add(std::move(q));
  }
  made.keep();
  show(e.gpu);
  a.queue_id = id;
  a.doorbell_offset = doorbell_offset(e.gpu) | e.doorbell * sizeof(std::uint64_t);
  exceptions_.raise(exceptions(id), kfd::exception_bit(kfd::kExceptionQueueNew));
  trace_queue(GpuId{e.gpu}, EngineId{e.engine}, id, e.ring_bytes, true);
  return 0;
}

int Queues::destroy(std::uint32_t id) {
  const auto it = queues_.find(id);
  if (it == queues_.end()) return EINVAL;
  auto& e = it->second;
  auto& server = *servers_[e.gpu];
  std::unique_ptr<HwQueue> gone;
  {
    const Server::Unmapped none(server);
    gone = server.remove(id);
  }
  trace_queue(GpuId{e.gpu}, EngineId{e.engine}, id, __atomic_load_n(e.config.rptr, __ATOMIC_RELAXED), false);
  const auto gpu = e.gpu;
  unpin(e);
  leave(e);
  queues_.erase(it);
  show(gpu);
  return 0;
}

std::vector<kfd::QueueEntry> Queues::entries() const {
  std::vector<kfd::QueueEntry> all;
  for (const auto& [id, e] : queues_)
    all.push_back({.exceptions = servers_[e.gpu]->find(id)->exceptions.load(std::memory_order_acquire),
                   .ring = e.ring,
                   .wptr = e.wptr_va,
                   .rptr = e.rptr_va,
                   .save_area = e.save_area,
                   .queue_id = id,
                   .gpu_id = node_.gpus[e.gpu].gpu_id,
                   .ring_bytes = static_cast<std::uint32_t>(e.ring_bytes),
                   .type = e.type,
                   .save_area_bytes = e.save_area_bytes});
  return all;
}

std::atomic<std::uint64_t>& Queues::exceptions(std::uint32_t id) noexcept {
  return servers_[queues_.at(id).gpu]->find(id)->exceptions;
}

void Queues::remap() noexcept {
  for (const auto& s : servers_) const Server::Unmapped none(*s);
  show(kAll);
}

int Queues::suspend(std::span<std::uint32_t> ids, bool suspended) noexcept {
  int done = 0;
  for (auto& id : ids) {
    const auto it = queues_.find(id);
    const bool fresh =
        it != queues_.end() && suspended &&
        (exceptions(id).load(std::memory_order_acquire) & kfd::exception_bit(kfd::kExceptionQueueNew)) != 0;
    if (it == queues_.end() || fresh) {
      id |= kfd::kDebugQueueInvalid;
      continue;
    }
    auto& server = *servers_[it->second.gpu];
    {
      const Server::Unmapped none(server);
      server.find(id)->suspended = suspended;
    }
    show(it->second.gpu);
    ++done;
  }
  return done;
}

void Queues::resume() noexcept {
  // Only queues that are suspended: mapping a queue again makes up for a lost doorbell.
  for (const auto& [id, e] : queues_) {
    auto& q = *servers_[e.gpu]->find(id);
    if (!q.suspended) continue;
    const Server::Unmapped none(*servers_[e.gpu]);
    q.suspended = false;
  }
}

int Queues::set_runtime(bool enabled) {
  if (enabled && runtime_) return EBUSY;
  if (enabled && !queues_.empty()) return EEXIST;
  runtime_ = enabled;
  return 0;
}

int Queues::wave_state(kfd::QueueWaveState& a) {
  const auto it = queues_.find(a.queue_id);
  if (it == queues_.end()) return EFAULT;
  const auto& e = it->second;
  if (!e.compute() || servers_[e.gpu]->find(a.queue_id)->active) return EINVAL;
  // The control stack grows down from its end, and the waves lie after it: both are empty.
  const kfd::WaveStateHeader h{.control_stack_offset = e.control_stack_bytes,
                               .control_stack_bytes = 0,
                               .wave_state_offset = e.control_stack_bytes,
                               .wave_state_bytes = 0};
  a.control_stack_used = a.save_area_used = 0;
  return to_user(a.control_stack, &h, sizeof h) ? 0 : EFAULT;
}

int Queues::set_gws(std::uint32_t id, bool given) {
  const auto it = queues_.find(id);
  if (it == queues_.end()) return EINVAL;
  if (it->second.gws == given) return given ? EBUSY : EINVAL;
  it->second.gws = given;
  return 0;
}

int Queues::update(const kfd::UpdateQueue& a) {
  const auto wish = wish_of(a);
  if (wish.error != 0) return wish.error;
  const auto it = queues_.find(a.queue_id);
  if (it == queues_.end()) return EFAULT;
  auto& e = it->second;
  auto& server = *servers_[e.gpu];
  std::unique_ptr<HwQueue> fresh;
  if (wish.active && (wish.ring != e.ring || wish.bytes != e.ring_bytes)) {
    if (e.compute()) return EINVAL;
    // The new ring takes the place of the old one when all else has succeeded; the pages of the pointers stay pinned.
    auto next = e;
    next.pinned = {};
    next.ring = wish.ring;
    const Unpins old(*this, next);
    if (ring_of(next, wish.ring, wish.bytes) != 0) return EFAULT;
    fresh = make({}, next, a.queue_id);
    e.config = next.config;
    e.ring = next.ring;
    e.ring_bytes = next.ring_bytes;
    std::swap(e.pinned.front(), next.pinned.front());
  }
  std::unique_ptr<HwQueue> gone;
  const Server::Unmapped none(server);
  if (fresh) {
    gone = server.remove(a.queue_id);
    fresh->exceptions.store(gone->exceptions.load());
    server.add(std::move(fresh));
  }
  server.find(a.queue_id)->active = wish.active;
  show(e.gpu);
  return 0;
}

}  // namespace sdma::emulator
