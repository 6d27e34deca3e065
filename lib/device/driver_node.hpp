// SPDX-License-Identifier: MIT
#pragma once
// What the nodes of devices share whose engines the kernel driver runs: KfdNode and RocrNode.
//
//   class KfdNode final : public DriverNode<KfdNode> { friend SharedNode; friend DriverNode; ... };
//
//   memory    blocks by VA, the host's path to VRAM, signals that nothing wakes
//   driver    clocks and events, by ioctls on a descriptor of /dev/kfd. All descriptors that a process opens are the
//             same process for the driver, so these calls work whichever library has the GPUs
//   queues    checks, handles and destruction; Node makes the ring
//   faults    each reported once, and kept by GPU: the driver's events, whichever library has the GPUs
//
//   sharing   the libraries export and import blocks by the driver's names for them
//
// Requires of Node: what SharedNode requires, but for `offer_of` and `open_block`; `export_block(base, bytes, token)`
// and `import_block(token, bytes, gpus, base)`, which return why the library refuses, or ""; `topology()`;
// `make_queue(const QueueRequest&, QueueState&)`, which returns a Diagnostic or nullopt, and
// `unmake_queue(const QueueState&)`. In the child of a fork, each call is an error.
//
// Locks, in the order in which they may be taken: `queues_mutex_`, `memory_`, those of the faults. None is held across
// a wait. Any thread; internal.
#include "busy_wait.hpp"
#include "kfd/driver_faults.hpp"
#include "kfd/driver_queues.hpp"
#include "shared_node.hpp"

#include <unistd.h>

#include <map>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class Node> class DriverNode : public SharedNode<Node> {
 public:
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) final {
    if (!this->in_opening_process()) return this->forked_error("create_signal");
    const auto taken = this->take_signal(r.where);
    if (!taken) return taken.error();
    const auto& [id, slot] = *taken;
    const Signal signal{.word = slot.word, .va = slot.va, .sleep = busy_wait};
    signal.set(r.value);
    if (r.where) (void)flush_host_writes(*r.where);
    this->hold();
    return SignalMemory(Lease(Shared::template give_back<&Node::free_signal>, self(), id), signal);
  }

  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) final {
    if (!this->in_opening_process()) return this->forked_error("create_queue");
    if (auto d = refuse(r, self()->topology())) return *d;
    const auto refused = [&](std::string message, std::string hint) {
      return Diagnostic{.where = place_of(r), .message = std::move(message), .hint = std::move(hint)};
    };
    if (r.watch_wptr)
      return refused("engines of this device do not watch wptr", "do not set watch_wptr: every queue has a doorbell");
    (void)faults_.look();
    if (const auto f = faults_.of_gpu(r.gpu))
      return refused("the driver has stopped this process's queues on the GPU: " + describe(*f),
                     "they cannot be recovered: restart the process");
    const std::lock_guard lock(queues_mutex_);
    QueueState q{
        .gpu = r.gpu, .engine = r.pick == EnginePick::exact ? r.engine : kUnknownEngine, .ring_bytes = r.ring_bytes};
    if (auto d = self()->make_queue(r, q)) {
      give_back_memory(q);
      return *d;
    }
    const auto id = next_queue_++;
    queues_.emplace(id, q);
    this->hold();
    return Queue(Lease(Shared::template give_back<&DriverNode::destroy_queue>, self(), id), q.memory, r.gpu, q.engine);
  }

  Errc wait_event(const Event& e, Deadline d) noexcept final { return wait_event(e.id(), d); }
  Errc wait_event(std::uint32_t id, Deadline d) noexcept {
    if (!this->in_opening_process()) return Errc::stopped;
    kfd::EventData event;
    event.event_id = id;
    for (;;) {
      const auto e = kfd::wait(fd_, {&event, 1}, d);
      if (e == Errc::stopped) return Errc::bad_argument;
      if (e == Errc::ok || d.passed()) return e;
    }
  }

  /// The fault that a queue of this GPU must report: after a fault, no completion of the process can be trusted.
  std::optional<Fault> fault(const Queue& q) const noexcept override {
    if (!this->in_opening_process()) return {};
    (void)faults_.look();
    const auto own = faults_.of_gpu(q.gpu());
    return own ? own : faults_.of_any_gpu();
  }

  using typename SharedNode<Node>::NewBlock;
  using typename SharedNode<Node>::Offer;
  Result<Offer, Diagnostic> offer_of(const Memory& m) {
    const std::lock_guard lock(this->memory_);
    const auto at = blocks_.find(m.id());
    if (at == blocks_.end() || at->second.va != m.va().value || !at->second.shareable) return this->not_shareable(m);
    const auto& b = at->second;
    Offer o{.object = this->shared_object(m, b.owner, b.gpus)};
    o.object.host_access = b.host != nullptr;
    o.object.offset = b.va - reinterpret_cast<std::uint64_t>(b.base);
    if (o.fd = b.file; o.fd >= 0) return o;
    if (auto why = self()->export_block(b.base, b.base_bytes, o.object.token); !why.empty())
      return Diagnostic{.where = fmt::format("share {:#x}", b.va),
                        .message = "the driver does not share this memory: " + std::move(why),
                        .hint = "the kernel's own driver cannot: install the one that ROCm ships (amdgpu-dkms)"};
    return o;
  }
  Result<NewBlock, Diagnostic> open_block(const MemoryRequest& r, const FetchedObject& f) {
    Block b{.base_bytes = round_up(f.object.offset + r.bytes, kPage),
            .bytes = r.bytes,
            .owner = r.where,
            .gpus = r.gpus,
            .opened = true};
    if (auto why = self()->import_block(f.object.token, b.base_bytes, r.gpus, &b.base); !why.empty())
      return Diagnostic{.where = fmt::format("open_shared process={}", f.owner->pid()),
                        .message = "the driver does not open this memory: " + std::move(why),
                        .hint = "all processes need the same driver and library, and GPUs that can reach the memory"};
    b.va = reinterpret_cast<std::uint64_t>(b.base) + f.object.offset;
    if (f.object.host_access != 0) b.host = reinterpret_cast<std::byte*>(b.va);
    return keep(b);
  }

  Result<Dmabuf, Diagnostic> dmabuf_of(const Memory& m) {
    const auto b = own_block(m, "export_dmabuf");
    if (!b) return b.error();
    int fd = -1;
    std::uint64_t offset = 0;
    if (auto why = self()->block_to_dmabuf(b->base, b->base_bytes, fd, offset); !why.empty())
      return Diagnostic{.where = fmt::format("export_dmabuf {:#x}", b->va),
                        .message = "the driver makes no DMABUF of this memory: " + std::move(why),
                        .hint = "it needs ROCm 5.6 or later, and Linux 6.5 or later"};
    return Dmabuf(fd, offset + (b->va - reinterpret_cast<std::uint64_t>(b->base)), m.bytes());
  }
  Result<NewBlock, Diagnostic> open_dmabuf(const MemoryRequest& r, const DmabufRequest& from) {
    const auto failed = [&](std::string message, std::string hint) {
      return Diagnostic{.where = fmt::format("import_dmabuf fd={} bytes={}", from.fd, from.bytes),
                        .message = std::move(message),
                        .hint = std::move(hint)};
    };
    Block b{.bytes = r.bytes, .owner = r.where, .gpus = r.gpus, .opened = true, .imported = true};
    if (auto why = self()->block_of_dmabuf(from.fd, r.gpus, &b.base, b.base_bytes); !why.empty())
      return failed("the driver does not take this DMABUF: " + std::move(why),
                    "pass a DMABUF of amdgpu, for GPUs that can reach the memory");
    b.va = reinterpret_cast<std::uint64_t>(b.base) + from.offset;
    const auto has = b.base_bytes;
    const auto block = keep(b);
    if (from.offset <= has && r.bytes <= has - from.offset) return block;
    self()->free_block(block.id);
    return failed(fmt::format("it has {} bytes, and {} from offset {} on are asked for", has, r.bytes, from.offset),
                  "pass the offset and the length that export_dmabuf has returned");
  }
  Result<IpcHandle, Diagnostic> ipc_of(const Memory& m) {
    const auto b = own_block(m, "export_ipc");
    if (!b) return b.error();
    IpcHandle h{.offset = b->va - reinterpret_cast<std::uint64_t>(b->base), .bytes = m.bytes()};
    if (auto why = self()->export_block(b->base, b->base_bytes, h.words); !why.empty())
      return Diagnostic{.where = fmt::format("export_ipc {:#x}", b->va),
                        .message = "the driver gives this memory no IPC handle: " + std::move(why),
                        .hint = "the kernel's own driver cannot: install the one that ROCm ships (amdgpu-dkms)"};
    return h;
  }
  Result<NewBlock, Diagnostic> open_ipc(const MemoryRequest& r, const IpcHandle& h) {
    Block b{.base_bytes = round_up(h.offset + r.bytes, kPage),
            .bytes = r.bytes,
            .owner = r.where,
            .gpus = r.gpus,
            .opened = true};
    if (auto why = self()->import_block(h.words, b.base_bytes, r.gpus, &b.base); !why.empty())
      return Diagnostic{.where = fmt::format("import_ipc bytes={}", h.bytes),
                        .message = "the driver does not open this memory: " + std::move(why),
                        .hint = "all processes need the same driver and library, and GPUs that can reach the memory"};
    b.va = reinterpret_cast<std::uint64_t>(b.base) + h.offset;
    return keep(b);
  }

  Result<Fault> wait_fault(Deadline d) noexcept final {
    return this->in_opening_process() ? faults_.wait(d) : Errc::stopped;
  }

  Errc flush_host_writes(GpuId g) const noexcept final {
    if (g.value >= gpus_.size()) return Errc::bad_argument;
    if (!this->in_opening_process()) return Errc::stopped;
    order::Native::before_doorbell(Caching::write_combining);
    if (auto* flush = gpus_[g.value].hdp_flush) {
      // Flushes writes to memory and discards data that was read ahead. The load proves that the store has arrived.
      *flush = 1;
      (void)*flush;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Errc::ok;
  }

  Errc peek(GpuVa va, std::span<std::byte> out) const noexcept final {
    if (!this->in_opening_process()) return Errc::stopped;
    const std::lock_guard lock(this->memory_);  // nothing is freed meanwhile
    for (std::size_t done = 0; done < out.size();) {
      const auto at = va.value + done;
      const auto* const b = block_at(at);
      if (!b || !b->host) return Errc::unmapped;
      const auto offset = at - b->va;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(b->bytes - offset, out.size() - done));
      if (b->owner) (void)flush_host_writes(*b->owner);
      load_bytes(b->host + offset, out.subspan(done, n));
      done += n;
    }
    return Errc::ok;
  }

  Result<Clock> clock(GpuId g) const noexcept final {
    if (g.value >= gpus_.size()) return Errc::bad_argument;
    if (!this->in_opening_process()) return Errc::stopped;
    if (gpus_[g.value].clock_hz == 0) return Errc::unknown;
    // Reads the GPU's clock between two reads of the host's, several times, and takes the narrowest interval.
    constexpr int kClockReads = 5;
    Clock best{.hz = gpus_[g.value].clock_hz};
    auto narrowest = Deadline::Clock::duration::max();
    for (int i = 0; i < kClockReads; ++i) {
      kfd::GetClockCounters c{.gpu_id = gpus_[g.value].gpu_id};
      const auto before = Deadline::Clock::now();
      if (kfd::call(fd_, kfd::Nr::get_clock_counters, c) != 0) return Errc::stopped;
      const auto width = Deadline::Clock::now() - before;
      if (width >= narrowest) continue;
      narrowest = width;
      best.ticks = c.gpu;
      best.host = before + width / 2;
    }
    return best;
  }

 protected:
  using Shared = SharedNode<Node>;
  struct Block {
    void* base{};  ///< the address that the allocator returned
    std::uint64_t base_bytes{};
    std::uint64_t va{}, bytes{};  ///< as requested
    std::byte* host{};            ///< null: not mapped for the host
    std::optional<GpuId> owner{};
    std::uint64_t gpus{};  ///< which may access it
    bool shareable{};
    bool opened{};    ///< it is of another process
    bool imported{};  ///< by a DMABUF
    int file = -1;    ///< of its pages, if they have one
    bool holds(std::uint64_t at) const noexcept { return at - va < bytes; }
  };
  struct GpuState {
    std::uint32_t thunk_node{}, gpu_id{};
    volatile std::uint32_t* hdp_flush{};  ///< null: the driver does not offer it
    std::uint64_t clock_hz{};             ///< 0: unknown
  };

  DriverNode() = default;
  ~DriverNode() {
    faults_.stop();
    if (fd_ >= 0) ::close(fd_);
  }

  /// Allocates what the driver needs for a queue, and creates it.
  std::optional<Diagnostic> make_driver_queue(DriverQueues& queues, const QueueRequest& r, QueueState& q) {
    const auto allocate = [&](std::uint64_t bytes, std::uint64_t& id) -> std::optional<Diagnostic> {
      const auto b = self()->allocate_block(
          {.bytes = bytes, .gpus = std::uint64_t{1} << r.gpu.value, .purpose = Purpose::packets});
      if (!b) return b.error();
      id = b->id;
      return {};
    };
    if (auto d = allocate(r.ring_bytes, q.ring)) return d;
    if (queues.needs_pointers())
      if (auto d = allocate(kPage, q.pointers)) return d;
    const auto& g = gpus_[r.gpu.value];
    return queues.create(r, self()->topology(), {.node = g.thunk_node, .id = g.gpu_id}, q);
  }
  void give_back_memory(const QueueState& q) noexcept {
    for (const auto id : {q.ring, q.pointers})
      if (id != 0) self()->free_block(id);
  }

  /// Memory that the allocator has given at `base`, for this request; `host`: the host can access it.
  NewBlock keep(const MemoryRequest& r, void* base, std::uint64_t base_bytes, bool host) {
    const auto at = round_up(reinterpret_cast<std::uint64_t>(base), r.alignment);
    return keep({.base = base,
                 .base_bytes = base_bytes,
                 .va = at,
                 .bytes = r.bytes,
                 .host = host ? reinterpret_cast<std::byte*>(at) : nullptr,
                 .owner = r.where,
                 .gpus = r.gpus,
                 .shareable = r.shareable});
  }
  /// From now on, the block belongs to the handle that this is for.
  NewBlock keep(const Block& b) {
    const std::lock_guard lock(this->memory_);
    blocks_.emplace(b.va, b);
    return {.id = b.va, .va = GpuVa{b.va}, .host = b.host};
  }
  /// The block with this address, or null. Hold `memory_`.
  const Block* block_at(std::uint64_t at) const noexcept {
    const auto next = blocks_.upper_bound(at);
    if (next != blocks_.begin())
      if (const auto& b = std::prev(next)->second; b.holds(at)) return &b;
    for (const auto& [id, b] : adopted_)
      if (b.holds(at)) return &b;
    return nullptr;
  }

  std::optional<Diagnostic> watch_faults() {
    std::vector<std::uint32_t> ids;
    for (const auto& g : gpus_) ids.push_back(g.gpu_id);
    return faults_.watch(fd_, std::move(ids));
  }

  int fd_ = -1;  ///< of the driver
  std::vector<GpuState> gpus_;
  std::map<std::uint64_t, Block> blocks_;             // by VA, which is also the id; guarded by memory_
  std::unordered_map<std::uint64_t, Block> adopted_;  // by id, may overlap others; guarded by memory_
  mutable std::mutex queues_mutex_;
  std::unordered_map<std::uint64_t, QueueState> queues_;
  mutable DriverFaults faults_;  // those that the driver has are fetched when they are asked for

 private:
  Node* self() noexcept { return static_cast<Node*>(this); }
  /// The block of this memory, if the allocator of the driver has it.
  Result<Block, Diagnostic> own_block(const Memory& m, const char* call) {
    const std::lock_guard lock(this->memory_);
    const auto at = blocks_.find(m.id());
    if (at != blocks_.end() && at->second.va == m.va().value && at->second.file < 0) return at->second;
    return Diagnostic{.where = fmt::format("{} {:#x}", call, m.va().value),
                      .message = "the driver has not allocated this memory",
                      .hint = "allocate it on this device, of a GPU",
                      .cause = Cause::bad_argument};
  }
  void destroy_queue(std::uint64_t id) noexcept {
    const std::lock_guard lock(queues_mutex_);
    const auto at = queues_.find(id);
    if (at == queues_.end()) return;
    self()->unmake_queue(at->second);
    give_back_memory(at->second);
    queues_.erase(at);
  }

  std::uint64_t next_queue_ = 1;  // guarded by queues_mutex_
};

}}}  // namespace sdma::v0_3::detail
