// SPDX-License-Identifier: MIT
#pragma once
// One GPU of one process: a thread that serves all its queues, engine by engine, and notices doorbells by itself.
//
//   server.make_room();                                    // may throw
//   { Server::Unmapped none(server); server.add(...); }    // between two rounds, all queues unmapped and mapped again
//
//   round     for each queue: read the doorbell, then one step. A poll
//             that holds its engine delays the engine's other queues
//   bound     a step moves a few MiB, however large its packet is. If an ioctl wants the queues, the round ends after
//             the present step, and the next round begins with the next queue: no ioctl waits for more than one step
//   busy      rounds follow each other
//   idle      spins for kNodePace.spin, then sleeps until the doorbell page is written (see doorbells.hpp); only for
//             short times if a poll waits for memory, because the program may store to it at any time
//
// The thread starts with the first queue and blocks all signals. It runs until the process ends, because a node with
// queues is never destroyed. With Drive::caller there is no thread: the test calls `turn`.
// Any thread except the server's may use Unmapped. A step calls back into Events, but never takes the node's lock.
#include "../../engine/worker.hpp"
#include "../node_options.hpp"
#include "../pace.hpp"
#include "../thread_sanitizer.hpp"
#include "../trace.hpp"
#include "doorbells.hpp"
#include "events.hpp"
#include "hw_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace sdma::emulator {

/// Which thread runs the rounds of a server.
enum class Drive : std::uint8_t { thread, caller };

class Server final : private sdma::detail::Worker::Served {
 public:
  /// `worked`: called after each round of the thread that made progress, because others may wait for its stores.
  /// `activity`: counts the steps of sDMA queues that made progress; may be null.
  Server(GpuId g, std::uint32_t gpu_id, AddressSpace& space, Events& events, const DoorbellPage& page,
         std::uint64_t* activity, std::function<void()> worked, Drive drive = Drive::thread)
      : gpu_(g),
        gpu_id_(gpu_id),
        drive_(drive),
        activity_(activity),
        worked_(std::move(worked)),
        events_(events),
        reader_(space, g),
        doorbells_(page),
        worker_(*this, kNodePace) {}
  ~Server() { worker_.stop(); }

  /// While it exists, no queue is mapped.
  class Unmapped {
   public:
    explicit Unmapped(Server& s) noexcept : s_(s) { s_.unmap(); }
    ~Unmapped() { s_.map(); }
    Unmapped(const Unmapped&) = delete;
    Unmapped& operator=(const Unmapped&) = delete;

   private:
    Server& s_;
  };
  /// Makes sure that there is a thread, and room for one more queue. Throws std::bad_alloc or std::system_error.
  void make_room() {
    doorbells_.knock();
    const std::lock_guard lock(worker_);
    queues_.reserve(queues_.size() + 1);
    if (worker_.started() || drive_ != Drive::thread) return;
    char name[16];
    std::snprintf(name, sizeof name, "sdma gpu%u", gpu_.value);
    worker_.start(name);
  }
  // Call the next two while no queue is mapped.
  /// Requires make_room.
  void add(std::unique_ptr<HwQueue> q) noexcept {
    q->evicted = evicted_;
    // Queues of one engine are served one after another.
    const auto at = std::upper_bound(queues_.begin(), queues_.end(), q->engine,
                                     [](EngineId e, const auto& other) { return e < other->engine; });
    queues_.insert(at, std::move(q));
  }
  std::unique_ptr<HwQueue> remove(std::uint32_t id) noexcept {
    const auto at = std::find_if(queues_.begin(), queues_.end(), [id](const auto& q) { return q->id == id; });
    if (at == queues_.end()) return nullptr;
    auto q = std::move(*at);
    queues_.erase(at);
    return q;
  }
  /// Call it where no other thread adds or removes a queue. Only `exceptions` may be used while the queue is mapped.
  HwQueue* find(std::uint32_t id) noexcept {
    for (auto& q : queues_)
      if (q->id == id) return q.get();
    return nullptr;
  }

  AddressSpace::Reader& reader() noexcept { return reader_; }
  Events& events() noexcept { return events_; }
  EngineState& state(EngineId e) noexcept { return states_[e.value]; }
  PipelineHooks hooks() noexcept {
    PipelineHooks h{.context = this};
    h.trap = [](void* s, std::uint64_t, std::uint32_t context) noexcept {
      static_cast<Server*>(s)->events_.interrupt(context);
    };
    h.fault = [](void* s, const Fault& f) noexcept { static_cast<Server*>(s)->on_fault(f); };
    if (trace_on()) {
      h.begin = [](void* s, const PacketEvent& e) noexcept {
        trace_packet(static_cast<Server*>(s)->gpu_, static_cast<Server*>(s)->serving_, e, true);
      };
      h.end = [](void* s, const PacketEvent& e) noexcept {
        trace_packet(static_cast<Server*>(s)->gpu_, static_cast<Server*>(s)->serving_, e, false);
      };
    }
    return h;
  }
  /// Runs one round. For Drive::caller only.
  Progress turn() noexcept {
    const std::lock_guard lock(worker_);
    return serve_all();
  }
  /// Call it after a store that a poll of this GPU may wait for.
  void nudge() noexcept {
    if (polls_.load(std::memory_order_relaxed)) doorbells_.knock();
  }

  /// Handles a VM fault of one of our queues: stops all of them and notifies the process. Called from within a step.
  void vm_fault(GpuVa va, bool mapped) noexcept {
    evict_ = true;
    kfd::MemoryException e{};
    e.not_present = !mapped;
    e.read_only = mapped;
    e.va = va.value & ~std::uint64_t{4095};
    e.gpu_id = gpu_id_;
    events_.memory_fault(e);
  }

 private:
  static constexpr std::uint32_t kEngines = 64;

  using Worker = sdma::detail::Worker;

  void unmap() noexcept {
    doorbells_.knock();
    worker_.lock();
  }
  void map() noexcept {
    holders_.fill(nullptr);
    // All queues are mapped again: doorbells that were rung meanwhile are lost, and wptr counts.
    for (auto& q : queues_) q->map();
    doorbells_.mappings_changed();
    worker_.unlock();
    doorbells_.knock();
  }
  Progress round() noexcept override {
    if (!std::exchange(exempt_, true)) exempt_this_thread();
    const auto p = serve_all();
    if (p == Progress::progressed) {
      doorbells_.awake();
      worked_();
    }
    return p;
  }
  bool spin(bool fresh) noexcept override { return fresh || options().watch == Watch::spin; }
  Worker::Rest rest(Progress p, std::chrono::nanoseconds nap) noexcept override {
    const bool waits = p == Progress::waiting;
    if (waits && !polls_.exchange(true)) return Worker::Rest::again;  // check once more, or a nudge is lost
    if (!waits) polls_.store(false);
    // After a wake-up, work will arrive soon, but the program's thread needs a processor first.
    return doorbells_.sleep(static_cast<std::uint64_t>(nap.count()), waits) ? Worker::Rest::woken : Worker::Rest::slept;
  }
  void wake() noexcept override { doorbells_.knock(); }
  Progress serve_all() noexcept {
    auto result = Progress::idle;
    for (auto at = next_ < queues_.size() ? std::exchange(next_, 0) : 0; at < queues_.size(); ++at) {
      const auto& q = queues_[at];
      if (!q->runs()) continue;
      if (drive_ == Drive::thread && worker_.wanted()) {
        next_ = at;
        return Progress::progressed;
      }
      auto*& holder = holders_[q->engine.value];
      if (holder && holder != q.get()) continue;
      const auto p = serve(*q);
      holder = !q->at_rest && q->holds_engine() ? q.get() : nullptr;
      result = sdma::detail::busier(result, p);
      if (evict_) {
        for (auto& other : queues_) other->evicted = true;
        evicted_ = true;
        evict_ = false;
        return Progress::progressed;
      }
    }
    return result;
  }
  Progress serve(HwQueue& q) noexcept {
    if (q.look()) trace_doorbell(gpu_, q.engine, q.id, q.told());
    if (q.at_rest) return Progress::idle;
    serving_ = q.engine;
    const auto p = q.step();
    if (p == Progress::progressed && activity_ && q.engine != kComputeEngine)
      __atomic_store_n(activity_, *activity_ + 1, __ATOMIC_RELAXED);  // this thread alone stores it
    if (p == Progress::idle || p == Progress::stopped) {
      q.at_rest = true;
      return Progress::progressed;
    }
    return p;
  }
  void on_fault(const Fault& f) noexcept {
    try {
      std::fprintf(stderr, "sdma emulator: %s\n", describe(f).c_str());
    } catch (const std::bad_alloc&) {
      std::fprintf(stderr,
                   "sdma emulator: gpu %u engine %u queue %" PRIu64 " at 0x%" PRIx64 ": %s, address 0x%" PRIx64 "\n",
                   f.gpu.value, f.engine.value, f.queue, f.position, name(f.kind).data(), f.va.value);
    }
    trace_fault(f);
    if (f.kind == FaultKind::unmapped || f.kind == FaultKind::read_only) vm_fault(f.va, f.kind == FaultKind::read_only);
  }

  const GpuId gpu_;
  const std::uint32_t gpu_id_;
  const Drive drive_;
  std::uint64_t* const activity_;
  const std::function<void()> worked_;
  Events& events_;
  AddressSpace::Reader reader_;
  std::array<EngineState, kEngines> states_{};
  Doorbells doorbells_;

  Worker worker_;  // its lock guards everything from here to evicted_
  std::vector<std::unique_ptr<HwQueue>> queues_;
  std::array<HwQueue*, kEngines> holders_{};
  std::size_t next_ = 0;  ///< where a round begins that follows one that ended early
  bool evict_ = false;
  bool evicted_ = false;  ///< set by a VM fault: queues that are created later do not run either
  bool exempt_ = false;   ///< the thread is exempt from ThreadSanitizer
  EngineId serving_{};    ///< the engine whose step runs

  std::atomic<bool> polls_{false};  ///< asleep while a poll waits
};

}  // namespace sdma::emulator
