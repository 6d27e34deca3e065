// SPDX-License-Identifier: MIT
#pragma once
// What the queues and handles of one CUDA device share: physical GPUs, memory, events, faults, and the device's thread.
//
//   publishers --> CudaQueue::ring --> streams    the thread: every queue's step, in turn, while one of them needs it;
//   thread     --> CudaQueue::step -->            otherwise all doorbells every scan_interval
//
// Locks, in the order in which they may be taken: `creation_`, the worker's, a queue's, the memory pool's, a GPU's
// `control`. Whether freed memory is still in use is asked without the pool's lock.
//
// Internal. Errors: Diagnostics, as Device gives them.
#include "../../engine/execute.hpp"
#include "../../engine/park.hpp"
#include "../../engine/worker.hpp"
#include "../busy_wait.hpp"
#include "../driverless_node.hpp"
#include "cuda_memory.hpp"
#include "cuda_queue.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/device/cuda.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <list>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

inline constexpr Worker::Pace kPace{.spin = std::chrono::microseconds(200),
                                    .first_nap = std::chrono::microseconds(20),
                                    .longest_nap = std::chrono::milliseconds(10),
                                    .pauses = 8};
inline constexpr std::chrono::nanoseconds kUrgentNap =
    std::chrono::microseconds(50);  // at most, while a queue waits for the thread
inline constexpr std::chrono::nanoseconds kFullNap =
    std::chrono::microseconds(200);  // likewise, if only for room: a full stream has work for longer
inline constexpr auto kLookForErrors = std::chrono::milliseconds(5);
/// What a GPU that does not answer is given for a small thing: a word, a reading of its clock.
inline constexpr auto kAnswer = std::chrono::seconds(10);
inline std::vector<PhysicalGpu*> for_each_logical(const std::vector<CudaGpu>& gpus,
                                                  const std::vector<PhysicalGpu*>& physical) {
  std::vector<PhysicalGpu*> out;
  for (std::size_t g = 0; g < gpus.size(); ++g) out.push_back(physical[g % physical.size()]);
  return out;
}

/// A parked stream still writes the words of its queue.
inline void keep_for_ever(std::unique_ptr<CudaQueue> q) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<CudaQueue>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(q));
}

/// What `open` has found: everything that a node is made of.
struct Probe {
  std::vector<Diagnostic> missing{};
  const Driver* driver{};
  int gpus{};  ///< physical
};
Probe probe(const CudaOptions&);

class Node final : public DriverlessNode<Node>, private Worker::Served {
 public:
  static constexpr std::string_view kShareName = "cuda";
  static Result<Node*, Diagnostic> make(const CudaOptions&, const Probe&);
  void stop() noexcept {
    stop_sharing();
    worker_.stop();
    const std::lock_guard creation(creation_);
    for (auto& e : entries_) retire(e);
  }

  Result<Memory, Diagnostic> adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus) {
    if (!in_opening_process()) return forked_error("adopt");
    const auto b = memory_pool_.adopt(static_cast<std::byte*>(pointer), bytes, gpus);
    if (!b) return b.error();
    hold();
    return Memory(Lease(give_back<&Node::free_block>, this, b->first), b->second.va, bytes, b->second.host);
  }
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override {
    if (!in_opening_process()) return forked_error("create_signal");
    if (auto d = refuse(MemoryRequest{.where = r.where, .bytes = sizeof r.value}, topology_)) return *d;
    const auto taken = take_signal(std::nullopt);  // the host sees only its own memory
    if (!taken) return taken.error();
    const auto& [id, s] = *taken;
    const auto signal = hooked({.word = s.word, .va = s.va});
    signal.set(r.value, Caching::write_back);
    hold();
    return SignalMemory(Lease(give_back<&Node::free_signal>, this, id), signal);
  }
  Signal hooked(Signal s) const noexcept override {
    s.sleep = busy_wait;
    s.context = const_cast<Node*>(this);  // what wakes changes it
    s.wake = on_host_store;
    return s;
  }
  Result<Queue, Diagnostic> create_queue(const QueueRequest&) override;
  std::optional<Fault> fault(const Queue& q) const noexcept override {
    if (!in_opening_process()) return {};
    if (auto f = faults_.of(q.id())) return f;
    const auto& gpu = physical(q.gpu());
    if (gpu.error() == kSuccess) return {};
    Fault f{.kind = FaultKind::driver_error, .anonymous = true, .gpu = q.gpu(), .engine = kUnknownEngine};
    f.rule = driver_.name_of(gpu.error());
    return f;
  }
  Errc flush_host_writes(GpuId g) const noexcept override {
    return in_opening_process() ? memory_pool_.flush(g) : Errc::stopped;
  }
  Errc peek(GpuVa va, std::span<std::byte> out) const noexcept override {
    return in_opening_process() ? memory_pool_.peek(va, out) : Errc::stopped;
  }
  /// The GPU's clock lies between two readings of the host's. The shortest of three tries counts.
  Result<Clock> clock(GpuId g) const noexcept override {
    if (g.value >= gpus_.size()) return Errc::bad_argument;
    if (!in_opening_process()) return Errc::stopped;
    auto& gpu = physical(g);
    const std::lock_guard own(gpu.control());
    auto* const word = reinterpret_cast<std::uint64_t*>(gpu.bounce(0));
    Clock best{.hz = kTicksPerSecond};
    auto shortest = Deadline::Clock::duration::max();
    for (int i = 0; i < 3; ++i) {
      const auto before = Deadline::Clock::now();
      if (!gpu.stamp_now(word, Deadline::in(kAnswer))) return Errc::stopped;
      const auto took = Deadline::Clock::now() - before;
      if (took >= shortest) continue;
      shortest = took;
      best.host = before + took / 2;
      best.ticks = atomic_ref(*word).load(std::memory_order_acquire);
    }
    return best;
  }

  bool rptr_is_of_engines() const noexcept override { return false; }
  const Topology& topology() const noexcept override { return topology_; }
  const std::vector<CudaGpu>& gpus() const noexcept { return gpus_; }
  const Driver& driver() const noexcept { return driver_; }
  std::uint32_t physical_gpus() const noexcept { return static_cast<std::uint32_t>(physical_.size()); }
  std::uint32_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }

  CudaIssued issued() const noexcept { return counters_.now(); }

  // Called by queues.
  void wake() noexcept override { parking_.wake(); }
  /// A publisher leaves something to the thread.
  void wake_for_queue() noexcept {
    Counters::add(counters_.wakes);
    wake();
  }
  void gpu_failed(PhysicalGpu& gpu) noexcept {
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
  Errc push_shadows(GpuId g) noexcept { return memory_pool_.push(g); }

 private:
  friend SharedNode;
  friend DriverlessNode;
  Node(const CudaOptions& o, const Driver& d, Topology t, std::vector<CudaGpu> gpus, std::vector<PhysicalGpu*> physical)
      : options_(o),
        driver_(d),
        topology_(std::move(t)),
        gpus_(std::move(gpus)),
        physical_(std::move(physical)),
        memory_pool_(space_, for_each_logical(gpus_, physical_)),
        worker_(*this, kPace),
        failed_(physical_.size()) {}
  ~Node() {
    stop();
    for (auto& e : entries_)
      if (e.parked) keep_for_ever(std::move(e.queue));
    if (parked() != 0) memory_pool_.keep();
  }

  /// A queue, and what it is made of.
  struct Entry {
    std::unique_ptr<CudaQueue> queue{};
    std::vector<std::uint64_t> blocks{};
    std::byte* pages{};  ///< ring, rptr, wptr and doorbell in ordinary memory; null if kernels write them
    std::size_t page_bytes{};
    Stream stream{};
    bool retired = false, parked = false, for_kernels = false;
    std::uint64_t blocks_before{};  ///< if parked: it may touch blocks with lower ids
  };
  /// So many commands of that queue may touch something.
  struct Use {
    std::uint64_t queue{}, command{};
  };

  PhysicalGpu& physical(GpuId g) const noexcept { return *physical_[g.value % physical_.size()]; }
  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest& r) {
    if (!in_opening_process()) return forked_error("allocate");
    if (auto d = refuse(r, topology_)) return *d;
    auto placed = r;
    // The host sees only its own memory at once, and words that processes share are for hosts, too.
    if (r.shareable && r.host_access && r.purpose == Purpose::words) placed.where.reset();
    return block_of(memory_pool_.allocate(placed, place_of(r)));
  }
  static Result<NewBlock, Diagnostic> block_of(const Result<std::pair<std::uint64_t, Block>, Diagnostic>& b) {
    if (!b) return b.error();
    return NewBlock{.id = b->first, .va = b->second.va, .host = b->second.host};
  }
  /// The token is the PCI address of the GPU.
  Result<Offer, Diagnostic> offer_of(const Memory& m) {
    const auto b = memory_pool_.exported(m.id(), m.va());
    if (!b && b.error() == kInvalidValue) return not_shareable(m);
    if (!b) {
      auto where = fmt::format("share {:#x}", m.va().value);
      // The driver's code does not name the limit.
      if (const Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC)); !one)
        return descriptor_error(std::move(where), "open /dev/null", errno);
      return Diagnostic{.where = std::move(where),
                        .message = "the driver exports no descriptor: " + driver_.describe(b.error()),
                        .hint = "a process needs one for each piece that it shares: ulimit -n"};
    }
    Offer o{shared_object(m, b->owner, b->gpus), b->file};
    o.object.host_access = b->host != nullptr;
    if (b->owner) o.object.token = token_of(*b->owner);
    return o;
  }
  Result<NewBlock, Diagnostic> open_block(const MemoryRequest& r, const FetchedObject& f) {
    const auto where = fmt::format("open_shared process={}", f.owner->pid());
    if (r.where && f.object.token != token_of(*r.where))
      return Diagnostic{.where = where,
                        .message = fmt::format("gpu{} is another GPU in that process", r.where->value),
                        .hint = "give all processes the same CUDA_VISIBLE_DEVICES"};
    if (!f.fd)
      return Diagnostic{.where = where,
                        .message = "its answer has no descriptor",
                        .hint = "use one version of the library in all processes"};
    auto seen = r;
    seen.host_access = f.object.host_access != 0;
    return block_of(memory_pool_.allocate(seen, where, f.fd.get()));
  }
  ShareToken token_of(GpuId g) const noexcept {
    ShareToken t{};
    const auto& pci = gpus_[g.value].pci;
    std::memcpy(t.data(), pci.data(), std::min(sizeof t, pci.size()));
    return t;
  }
  void free_block(std::uint64_t id) noexcept {
    memory_pool_.free(id, [this, id, asked = false, uses = std::vector<Use>{}]() mutable {
      if (!asked) uses = this->uses(id);  // after the mapping is gone: no later command can touch it
      asked = true;
      return in_use(uses);
    });
    unpin();
  }
  /// The driver unpins shared pages only while no stream waits, so no queue issues commands meanwhile.
  void unpin() noexcept {
    if (!RegisteredMemory::of_process().has_given()) return;
    const std::lock_guard lock(worker_);
    std::vector<std::unique_lock<std::mutex>> held;
    for (auto& e : entries_)
      if (!held.emplace_back(e.queue->hold_up()).owns_lock()) return;
    memory_pool_.unpin();
  }
  /// A parked stream may still wait for the word, or store it: then it is never used again.
  void free_signal(std::uint64_t id) noexcept {
    if (parked() == 0) SharedNode::free_signal(id);
  }
  /// The Signal::wake hook: a host has stored a word.
  /// Streams see the word by themselves; the thread may be asleep.
  static void on_host_store(void* node, GpuVa) noexcept {
    auto& n = *static_cast<Node*>(node);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (n.urgent_.load(std::memory_order_relaxed) != 0) n.wake();
  }
  void destroy_queue(std::uint64_t id) noexcept;
  std::optional<Diagnostic> place(const QueueRequest&, QueueParts&);
  std::optional<Diagnostic> furnish(const QueueRequest&, QueueParts&, CommandParts&, Entry&);
  void map_queues(GpuId) noexcept;
  void retire(Entry&) noexcept;
  void dispose(Entry&) noexcept;
  /// The commands that may touch a block whose mapping has just gone.
  std::vector<Use> uses(std::uint64_t block) {
    std::vector<Use> out;
    const std::lock_guard lock(worker_);
    for (const auto& e : entries_)
      if (!e.parked || block < e.blocks_before) out.push_back({e.queue->parts().id, e.queue->issued()});
    return out;
  }
  bool in_use(std::vector<Use>& uses) noexcept {
    const std::lock_guard lock(worker_);
    std::erase_if(uses, [&](const Use& u) {
      const auto at = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.queue->parts().id == u.queue; });
      return at == entries_.end() || (!at->parked && at->queue->has_finished(u.command));
    });
    return !uses.empty();
  }

  Progress round() noexcept override {
    ticket_ = parking_.ticket();
    auto result = Progress::idle;
    std::uint32_t urgent = 0, full = 0;
    watched_ = false;
    const auto now = Deadline::Clock::now();
    const bool look = now - looked_ > kLookForErrors;
    if (look) looked_ = now;
    for (auto& e : entries_) {
      if (e.retired) continue;
      if (look) e.queue->look_for_errors();
      result = busier(result, e.queue->step(Who::thread));
      urgent += e.queue->urgent();
      full += e.queue->full();
      watched_ = watched_ || e.for_kernels;
    }
    urgent_.store(urgent, std::memory_order_relaxed);
    only_full_ = urgent == full;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before words are loaded again: see on_host_store
    return result == Progress::stopped ? Progress::idle : result;
  }
  bool spin(bool fresh) noexcept override {
    return watched_ || (fresh && !only_full_ && urgent_.load(std::memory_order_relaxed) != 0);
  }
  Worker::Rest rest(Progress p, std::chrono::nanoseconds nap) noexcept override {
    const bool urgent = urgent_.load(std::memory_order_relaxed) != 0;
    const auto scan =
        options_.scan_interval.count() > 0 ? Deadline::in(options_.scan_interval) : Deadline::in(std::chrono::hours(1));
    if (p == Progress::idle) {
      parking_.sleep(ticket_, scan);
      return Worker::Rest::again;
    }
    parking_.sleep(ticket_, Deadline::in(urgent ? std::min(nap, only_full_ ? kFullNap : kUrgentNap) : nap));
    return Worker::Rest::slept;
  }

  const CudaOptions options_;
  const Driver& driver_;
  const Topology topology_;
  const std::vector<CudaGpu> gpus_;
  const std::vector<PhysicalGpu*> physical_;
  AddressSpace space_;
  mutable MemoryPool memory_pool_;
  Counters counters_{};

  std::mutex creation_;           ///< queues are created one at a time
  std::uint64_t next_queue_ = 1;  // guarded by creation_
  mutable Worker worker_;         // its lock guards `entries_`
  std::list<Entry> entries_;      ///< those of destroyed queues, too, if their streams are parked
  std::atomic<std::uint32_t> parked_{0}, urgent_{0};
  std::vector<std::atomic<bool>> failed_;  ///< for each physical GPU: its error has been reported

  Parking parking_;
  std::uint32_t ticket_ = 0;              // the rest: used only by the thread
  Deadline::Clock::time_point looked_{};  ///< for errors
  bool only_full_ = false;                ///< queues that need the thread need it for room
  bool watched_ = false;                  ///< kernels ring a doorbell without a call
};

}}}  // namespace sdma::v0_3::detail::cuda
