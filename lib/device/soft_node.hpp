// SPDX-License-Identifier: MIT
#pragma once
// What the engines and handles of one software device share: memory, signals, events, faults, and the list of waiters.
//
// The device's destructor stops the threads; queues and memory stay in place until their handles are destroyed.
//
// Locks, in the order in which they may be taken: `creation_` (queues are created and destroyed), an engine's mutex,
// `memory_`, then the others. No engine thread takes `creation_` or `memory_`. Under `memory_`, nothing is waited for
// that an engine or another process has to do; under `creation_`, an engine ends what it is executing.
//
// Freed memory: its mapping goes at once, and its pages when no engine can touch them any more, which a later call of
// allocate or free finds out; until then they are in `leaving_`. Internal to the library.
#include "../engine/baton.hpp"
#include "../engine/execute.hpp"
#include "bells.hpp"
#include "driverless_node.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sleepers.hpp"
#include "soft_engine.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class SoftNode final : public DriverlessNode<SoftNode> {
 public:
  static constexpr std::string_view kShareName = "soft";
  SoftNode(const SoftOptions& o, Topology t)
      : options_(o),
        topology_(std::move(t)),
        gpu_bytes_(topology_.gpus.size()),
        next_va_(o.va_base.value),
        engines_(topology_.gpus.size() * 64),
        engine_of_(engines_.size()),
        may_spin_(std::max(std::thread::hardware_concurrency(), 1u) - 1) {}
  void stop() noexcept {
    {
      std::lock_guard lock(creation_);
      if (std::exchange(stopped_, true)) return;
    }
    stop_sharing();
    scan_ends_.store(true, std::memory_order_release);
    scan_parking_.wake();
    if (scan_thread_.joinable()) scan_thread_.join();
    for (auto& e : engines_)
      if (e) e->stop();
  }

  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override {
    if (!in_opening_process()) return forked_error("create_signal");
    const auto taken = take_signal(r.where);
    if (!taken) return taken.error();
    const auto& [id, s] = *taken;
    const auto signal = hooked({.word = s.word, .va = s.va});
    signal.set(r.value, Caching::write_back);
    hold();
    return SignalMemory(Lease(give_back<&SoftNode::free_signal>, this, id), signal);
  }
  Signal hooked(Signal s) const noexcept override {
    s.sleep = sleep_for_signal;
    s.context = const_cast<SoftNode*>(this);  // what sleeps and wakes changes it
    s.wake = on_host_store;
    return s;
  }
  Result<Queue, Diagnostic> create_queue(const QueueRequest&) override;
  /// A host has rung a doorbell of this engine.
  void on_doorbell(SoftEngine&) noexcept;
  std::optional<Fault> fault(const Queue& q) const noexcept override {
    if (!in_opening_process()) return {};
    return faults_.of(q.id());
  }
  std::uint64_t lost_faults() const noexcept { return in_opening_process() ? faults_.lost() : 0; }
  Errc flush_host_writes(GpuId g) const noexcept override {  // nothing to do
    return g.value < topology_.gpus.size() ? Errc::ok : Errc::bad_argument;
  }
  Result<Clock> clock(GpuId g) const noexcept override {
    if (g.value >= topology_.gpus.size()) return Errc::bad_argument;
    const auto now = Deadline::Clock::now();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
    return Clock{.ticks = static_cast<std::uint64_t>(ns) / 10, .host = now, .hz = kTicksPerSecond};
  }
  bool kernels_stand_in() const noexcept override { return true; }
  bool takes_memory() const noexcept override { return true; }
  Errc allow(GpuVa va, std::uint64_t gpus, Deadline d) noexcept override {
    if (!in_opening_process()) return Errc::stopped;
    {
      const std::lock_guard lock(memory_);
      auto m = space_.find(va);
      if (!m || m->va != va) return Errc::unmapped;
      m->gpus = gpus;
      const Mapping now = *m;
      // Who may still use the old mapping is waited for without the lock.
      if (const auto e = space_.replace({&va, 1}, {&now, 1}, Deadline{}); e != Errc::timed_out) return e;
    }
    return space_.drain(d);
  }
  Errc peek(GpuVa va, std::span<std::byte> out) const noexcept override {
    if (!in_opening_process()) return Errc::stopped;
    std::lock_guard lock(memory_);  // nothing is unmapped meanwhile
    for (std::size_t done = 0; done < out.size();) {
      const auto m = space_.find(va + done);
      if (!m) return Errc::unmapped;
      const auto offset = (va + done) - m->va;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(m->bytes - offset, out.size() - done));
      load_bytes(m->host + offset, out.subspan(done, n));
      done += n;
    }
    return Errc::ok;
  }
  std::vector<EngineCounters> counters() const;

  const Topology& topology() const noexcept override { return topology_; }
  const SoftOptions& options() const noexcept { return options_; }
  AddressSpace& space() noexcept { return space_; }
  bool adversarial() const noexcept { return options_.ordering == Ordering::adversarial; }
  /// Those of an adversarial node.
  Sleepers& sleepers() noexcept { return sleepers_; }

  /// From now on its queues act only when a Baton steps them: these are its agents, in the order of GPUs and engines.
  std::vector<std::unique_ptr<Baton::Agent>> hold_queues();
  /// The engines' threads serve them again.
  void let_go() noexcept;
  bool is_held() const noexcept { return held_.load(std::memory_order_acquire); }

  // Called by engine threads.
  /// Call it after a store: wakes sleeping hosts, and engines with pending polls.
  void wake_after_store() noexcept {
    if (adversarial()) sleepers_.activity();
    wake_waiters([](const SoftEngine&) { return true; });
  }
  const Bells& bells() const noexcept { return bells_; }
  /// Counts engines that are awake: an engine must not spin if others need its core.
  void count_awake(bool more) noexcept { awake_.fetch_add(more ? 1 : ~0u, std::memory_order_relaxed); }
  bool crowded() const noexcept { return awake_.load(std::memory_order_relaxed) > may_spin_ + 1; }
  bool begin_spinning() noexcept {
    if (spinning_.fetch_add(1, std::memory_order_relaxed) < may_spin_) return true;
    end_spinning();
    return false;
  }
  void end_spinning() noexcept { spinning_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  friend SharedNode;
  friend DriverlessNode;
  ~SoftNode() {
    stop();
    queues_.clear();
    engines_.clear();
    for (const auto* all : {&blocks_, &leaving_})
      for (const auto& [id, b] : *all) munmap(b.pages, b.mapped);
  }

  struct Block {
    std::byte* pages{};
    std::size_t mapped{};  ///< bytes of `pages`, including the unmapped gap
    GpuVa va{};
    std::uint64_t bytes{};
    std::optional<GpuId> owner{};  ///< whose bytes it counts among
    std::uint64_t gpus{};
    Descriptor file{};  ///< of what other processes may open
  };

  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest& r) {
    if (!in_opening_process()) return forked_error("allocate");
    if (auto d = refuse(r, topology_)) return *d;
    if (!r.shareable) return map_block(r, -1);
    auto file = shareable_pages(place_of(r), round_up(r.bytes, kPage));
    if (!file) return file.error();
    const auto b = map_block(r, file->get());
    if (!b) return b;
    const std::lock_guard lock(memory_);
    blocks_.at(b->id).file = std::move(*file);
    return b;
  }
  Result<Offer, Diagnostic> offer_of(const Memory& m) {
    const std::lock_guard lock(memory_);
    const auto at = blocks_.find(m.id());
    if (at == blocks_.end() || at->second.va != m.va() || !at->second.file) return not_shareable(m);
    Offer o{shared_object(m, at->second.owner, at->second.gpus), at->second.file.get()};
    if (bells_.file() >= 0)
      if (const auto b = shares_.offer(kBells, {.bytes = Bells::bytes()}, bells_.file())) o.object.bells = b->object;
    return o;
  }
  Result<NewBlock, Diagnostic> open_block(const MemoryRequest& r, const FetchedObject& f) {
    return map_block(r, f.fd.get(), false);
  }
  /// The descriptor of the pages: what maps it sees the same bytes.
  Result<Dmabuf, Diagnostic> dmabuf_of(const Memory& m) {
    const std::lock_guard lock(memory_);
    const auto at = blocks_.find(m.id());
    if (at == blocks_.end() || at->second.va != m.va() || !at->second.file) return not_shareable(m);
    const int fd = fcntl(at->second.file.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
      return Diagnostic{.where = fmt::format("export_dmabuf {:#x}", m.va().value),
                        .message = std::string("no descriptor is left: ") + std::strerror(errno),
                        .hint = "close some, or raise ulimit -n"};
    return Dmabuf(fd, 0, m.bytes());
  }
  Result<NewBlock, Diagnostic> open_dmabuf(const MemoryRequest& r, const DmabufRequest& from) {
    struct stat s {};
    const auto refused = [&](std::string why) {
      return Diagnostic{.where = fmt::format("import_dmabuf fd={} bytes={}", from.fd, from.bytes),
                        .message = std::move(why),
                        .hint = "pass what export_dmabuf of a software device has returned",
                        .cause = Cause::bad_argument};
    };
    if (fstat(from.fd, &s) != 0) return refused(std::string("the descriptor is not open: ") + std::strerror(errno));
    if (from.offset != 0) return refused("memory of software devices begins at offset 0");
    if (!S_ISREG(s.st_mode) || static_cast<std::uint64_t>(s.st_size) < from.bytes)
      return refused(fmt::format("the descriptor is not of memory, or has only {} bytes", s.st_size));
    return map_block(r, from.fd, false);
  }
  /// Pages of this process or, with a descriptor, of a file. `counts`: they are of this process's GPU memory.
  Result<NewBlock, Diagnostic> map_block(const MemoryRequest& r, int file, bool counts = true) {
    const auto where = place_of(r);
    const auto out_of_memory = [&](const std::string& why) {
      return Diagnostic{.where = where,
                        .message = "out of memory: " + why,
                        .hint = "free memory, or request less",
                        .cause = Cause::no_memory};
    };

    if (r.where && counts && topology_.gpus[r.where->value].memory_bytes == 0)
      return Diagnostic{.where = where,
                        .message = fmt::format("it is unknown how much memory gpu{} has", r.where->value),
                        .hint = "set Gpu::memory_bytes, in a file \"memory_bytes\""};
    std::lock_guard lock(memory_);
    collect();
    if (r.where && counts && gpu_bytes_[r.where->value] + r.bytes > topology_.gpus[r.where->value].memory_bytes)
      return out_of_memory(fmt::format("the GPU has {} bytes, of which {} are in use",
                                       topology_.gpus[r.where->value].memory_bytes, gpu_bytes_[r.where->value]));
    // The requested memory in whole pages, followed by a page that nothing maps.
    const auto alignment = std::max(r.alignment, kPage), bytes = round_up(r.bytes, 8), used = round_up(bytes, kPage),
               span = used + kPage;
    const auto all = span + alignment - kPage;
    auto* raw =
        static_cast<std::byte*>(mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (raw == MAP_FAILED) return out_of_memory(std::strerror(errno));
    auto* at =
        raw + (round_up(reinterpret_cast<std::uintptr_t>(raw), alignment) - reinterpret_cast<std::uintptr_t>(raw));
    if (at != raw) munmap(raw, static_cast<std::size_t>(at - raw));
    if (const auto tail = static_cast<std::size_t>(raw + all - (at + span)); tail != 0) munmap(at + span, tail);
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    if (file < 0 ? mprotect(at, used, kAccess) != 0
                 : mmap(at, used, kAccess, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) {
      const std::string why = std::strerror(errno);
      munmap(at, span);
      return out_of_memory(why);
    }
    GpuVa va{reinterpret_cast<std::uintptr_t>(at)};
    if (options_.va_base.value != 0) {
      va = GpuVa{round_up(next_va_, alignment)};
    }
    const Mapping m{.va = va,
                    .bytes = bytes,
                    .host = at,
                    .owner = r.where ? r.where->value : Mapping::kHost,
                    .gpus = r.gpus,
                    .access = Access::read_write};
    if (const auto e = space_.map(m); e != Errc::ok) {
      munmap(at, span);
      return Diagnostic{.where = where,
                        .message = fmt::format("cannot map {:#x}: {}", va.value, message(e)),
                        .hint = "choose another va_base"};
    }
    if (options_.va_base.value != 0) next_va_ = va.value + span;
    const auto id = next_id_++;
    const auto owner = counts ? r.where : std::nullopt;
    blocks_.emplace(id, Block{.pages = at, .mapped = span, .va = va, .bytes = r.bytes, .owner = owner, .gpus = r.gpus});
    if (owner) gpu_bytes_[owner->value] += r.bytes;
    return NewBlock{.id = id, .va = va, .host = at};
  }
  void free_block(std::uint64_t id) noexcept {
    std::lock_guard lock(memory_);
    const auto at = blocks_.find(id);
    if (at == blocks_.end()) return;
    // no_space: engines still see the mapping, so the block stays as long as the device.
    if (space_.unmap(at->second.va, Deadline{}) == Errc::no_space) return;
    if (const auto owner = at->second.owner) gpu_bytes_[owner->value] -= at->second.bytes;
    leaving_.insert(blocks_.extract(at));
    collect();
  }
  /// Gives back the pages of freed memory, if no engine can touch them any more. Hold `memory_`.
  void collect() noexcept {
    if (leaving_.empty() || space_.drain(Deadline{}) != Errc::ok) return;
    for (const auto& [id, b] : leaving_) munmap(b.pages, b.mapped);
    leaving_.clear();
  }
  Result<RingMemory, Diagnostic> make_ring(const QueueRequest&, SoftQueue&);
  SoftEngine& engine(GpuId, EngineId);
  EngineId choose(const QueueRequest&);
  void map_queues(GpuId) noexcept;
  void destroy_queue(std::uint64_t id) noexcept;
  void scan() noexcept;
  /// Wakes sleeping hosts, and those waiting engines for which `which` is true; and all of other processes that have
  /// shared memory with this one.
  template <class F> void wake_waiters(F which) noexcept {
    // Orders the store before the loads that check for sleepers. Sleepers register first and then load the word.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bells_.ring(topology_.gpus.size(), [&](std::size_t g, std::size_t n) {
      if (auto* e = engine_of_[g * 64 + n].load(std::memory_order_acquire); e && which(*e)) e->wake();
    });
    const auto others = owners_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < others; ++i) {
      const auto& other = *owners_bells_[i].second;
      other.ring(Bells::kGpus, [&](std::size_t g, std::size_t n) { other.engine(g, n).wake(); });
    }
  }
  /// The bells of a process whose memory is opened. Those of the first kMostOwners are kept; threads of others read
  /// their words again after a millisecond.
  void met(const SharedHandle& h, const FetchedObject& f, Deadline d) {
    if (f.object.bells == 0 || !has_room_for(h)) return;
    auto asked = h;
    asked.object = f.object.bells;
    asked.bytes = Bells::bytes();
    const auto got = fetch(asked, kShareName, f.owner, d);
    if (!got) return;
    auto bells = std::make_unique<Bells>(got->fd);
    const std::lock_guard lock(memory_);
    if (!*bells || !has_room_for(h)) return;  // another thread may have met the process meanwhile
    const auto n = owners_.load(std::memory_order_relaxed);
    owners_bells_[n] = {h.socket, std::move(bells)};
    owners_.store(n + 1, std::memory_order_release);
  }
  /// Is that process not among the known owners, and may it become one?
  bool has_room_for(const SharedHandle& h) const noexcept {
    const auto n = owners_.load(std::memory_order_acquire);
    const auto known = [&](const auto& o) { return o.first == h.socket; };
    return n < kMostOwners &&
           std::none_of(owners_bells_.begin(), owners_bells_.begin() + static_cast<std::ptrdiff_t>(n), known);
  }
  /// After an action of a host thread. An adversarial node may delay the thread here, until everything else has
  /// happened that can happen without it. Before the first doorbell there is nothing that could.
  void delay_host() noexcept {
    if (!adversarial() || is_held() || !in_opening_process()) return;
    sleepers_.activity();
    if (!rung_.load(std::memory_order_relaxed)) return;
    std::uint64_t seed = 0;
    {
      const std::lock_guard lock(hosts_mutex_);
      if (!hosts_.falls_asleep()) return;
      seed = options_.seed + ++host_naps_;
    }
    for (Nap nap{seed, kHostNaps}; !sleepers_.ends(nap);) std::this_thread::sleep_for(Sleepers::kCheck);
  }
  static void sleep_for_signal(void* node, std::uint64_t* word, std::uint64_t seen, Deadline d) noexcept {
    auto& n = *static_cast<SoftNode*>(node);
    // A store by the word's address calls no hook, nor does one of a process that has not opened memory of this one: so
    // check the word again after a millisecond.
    n.bells_.hosts().sleep_unless(d.within(std::chrono::milliseconds(1)),
                                  [&] { return atomic_ref(*word).load(std::memory_order_seq_cst) != seen; });
  }
  /// The Signal::wake hook: a host has stored this word.
  static void on_host_store(void* node, GpuVa va) noexcept {
    auto& n = *static_cast<SoftNode*>(node);
    n.wake_waiters([va](const SoftEngine& e) { return e.polls(va); });
    n.delay_host();
  }

  /// Streams of random numbers, beside those of the pipelines.
  static constexpr std::uint64_t kQueueNaps = 2, kHosts = 3, kHostNaps = 4;

  const SoftOptions options_;
  const Topology topology_;
  AddressSpace space_;

  // Guarded by memory_.
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Block> leaving_;  ///< freed, and an engine may still be using them
  std::vector<std::uint64_t> gpu_bytes_;
  std::uint64_t next_id_ = 1, next_va_ = 0;

  mutable std::mutex creation_;
  std::vector<std::unique_ptr<SoftEngine>> engines_;  ///< 64 per GPU; null until an engine has its first queue
  std::unordered_map<std::uint64_t, SoftEngine*> queues_;
  bool stopped_ = false;

  Sleepers sleepers_;
  std::mutex hosts_mutex_;
  Sleepiness hosts_{options_.seed, kHosts};  // guarded by hosts_mutex_, as is the number of their naps
  std::uint64_t host_naps_ = 0;
  std::atomic<bool> rung_{false};  // has any doorbell rung?
  std::atomic<bool> held_{false};  // does a Baton step the queues?

  static constexpr std::uint64_t kBells = ~std::uint64_t{};  ///< among the blocks that are offered
  static constexpr std::size_t kMostOwners = 64;
  Bells bells_;
  /// By their sockets, in the order in which memory of theirs was first opened. Appended under memory_.
  std::array<std::pair<std::array<std::uint64_t, 2>, std::unique_ptr<Bells>>, kMostOwners> owners_bells_;
  std::atomic<std::size_t> owners_{0};

  Parking scan_parking_;
  std::atomic<bool> scan_ends_{false};
  std::thread scan_thread_;
  std::atomic<std::uint32_t> spinning_{0}, awake_{0};
  std::vector<std::atomic<SoftEngine*>> engine_of_;  ///< the same as engines_, for engine threads
  const std::uint32_t may_spin_;
};

}}}  // namespace sdma::v0_3::detail
