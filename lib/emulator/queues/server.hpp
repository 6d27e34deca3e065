// SPDX-License-Identifier: MIT
#pragma once
// One GPU of one process: a thread that serves all its queues, engine by engine, and notices doorbells by itself.
//
//   server.make_room();                                    // may throw
//   { Server::Unmapped none(server); server.add(...); }    // between two rounds, all queues unmapped and mapped again
//
//   round     for each queue: read the doorbell, then one step. A poll
//             that holds its engine delays the engine's other queues
//   wide      if two or more engines have work that have moved much lately, the engines work at the same time, each on
//             a thread of a crew (as many threads as processors, at most), and each for a few steps. Small packets are
//             not worth the threads
//   bound     a step moves a few MiB, however large its packet is. If an ioctl wants the queues, the round ends after
//             the present step, and the next round begins with the next queue: no ioctl waits for more than one step.
//             A doorbell of another engine waits for a wide round's few steps
//   busy      rounds follow each other
//   idle      spins for kNodePace.spin, or 2 ms after a step that has moved much; then sleeps until the doorbell page
//             is written (see doorbells.hpp); only for short times if a poll waits for memory, because the program may
//             store to it at any time
//
// The thread starts with the first queue and blocks all signals. It runs until the process ends, because a node with
// queues is never destroyed. With Drive::caller there is no thread: the test calls `turn`.
// Any thread except the server's may use Unmapped. A step calls back into Events, but never takes the node's lock.
#include "../../engine/worker.hpp"
#include "../node_options.hpp"
#include "../pace.hpp"
#include "../thread_sanitizer.hpp"
#include "../trace.hpp"
#include "crew.hpp"
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
#include <string>
#include <thread>
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
        space_(space),
        doorbells_(page),
        crew_("sdma gpu" + std::to_string(g.value)),
        worker_(*this, kNodePace) {
    for (std::uint32_t e = 0; e < kEngines; ++e) engines_[e] = {.server = this, .id = EngineId{e}};
  }
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

  /// Through which the queues of an engine access memory. Throws std::bad_alloc at the first call for an engine.
  AddressSpace::Reader& reader(EngineId e) {
    auto& r = engines_[e.value].reader;
    if (!r) r = std::make_unique<AddressSpace::Reader>(space_, gpu_);
    return *r;
  }
  Events& events() noexcept { return events_; }
  EngineState& state(EngineId e) noexcept { return engines_[e.value].state; }
  PipelineHooks hooks(EngineId e) noexcept {
    PipelineHooks h{.context = &engines_[e.value]};
    h.trap = [](void* s, std::uint64_t, std::uint32_t context) noexcept {
      static_cast<Engine*>(s)->server->events_.interrupt(context);
    };
    h.fault = [](void* s, const Fault& f) noexcept { static_cast<Engine*>(s)->server->on_fault(f); };
    if (trace_on()) {
      h.begin = [](void* s, const PacketEvent& p) noexcept {
        const auto& engine = *static_cast<Engine*>(s);
        trace_packet(engine.server->gpu_, engine.id, p, true);
      };
      h.end = [](void* s, const PacketEvent& p) noexcept {
        const auto& engine = *static_cast<Engine*>(s);
        trace_packet(engine.server->gpu_, engine.id, p, false);
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
    evict_.store(true, std::memory_order_relaxed);
    kfd::MemoryException e{};
    e.not_present = !mapped;
    e.read_only = mapped;
    e.va = va.value & ~std::uint64_t{4095};
    e.gpu_id = gpu_id_;
    events_.memory_fault(e);
  }

 private:
  static constexpr std::uint32_t kEngines = 64;
  static constexpr unsigned kMostThreads = 16;
  static constexpr std::chrono::milliseconds kLongSpin{2};
  static constexpr std::uint64_t kMuch = 128 << 10;  ///< bytes of a step: about 10 us
  static constexpr int kWideSteps = 4;               ///< of an engine between two meetings of the crew
  static constexpr int kLittle = 8;                  ///< steps that move little, after which an engine no longer counts

  struct Engine {
    Server* server{};
    EngineId id{};
    EngineState state{};
    std::unique_ptr<AddressSpace::Reader> reader{};
    HwQueue* holder{};       ///< the queue whose poll keeps the others from the engine
    std::uint32_t turn = 0;  ///< in a wide round: which of its queues comes next
    int much = 0;            ///< it has moved much: how many steps that move little it may still take
  };
  /// The queues of one engine: [first, end) of queues_.
  struct Group {
    std::size_t first, end;
  };

  using Worker = sdma::detail::Worker;

  void unmap() noexcept {
    doorbells_.knock();
    worker_.lock();
  }
  void map() noexcept {
    for (auto& e : engines_) e.holder = nullptr;
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
      quiet_since_ = {};
      doorbells_.awake();
      worked_();
    }
    return p;
  }
  /// A program that moves much needs a while for what it does between two copies, and then gains by a thread that is
  /// awake: a copy of a megabyte takes no longer than to wake up.
  bool spin(bool fresh) noexcept override {
    if (fresh || options().watch == Watch::spin) return true;
    if (!moves_much_.load(std::memory_order_relaxed)) return false;
    const auto now = Deadline::Clock::now();
    if (quiet_since_ == Deadline::Clock::time_point{}) quiet_since_ = now;
    if (now - quiet_since_ < kLongSpin) return true;
    moves_much_.store(false, std::memory_order_relaxed);
    for (auto& e : engines_) e.much = 0;
    return false;
  }
  Worker::Rest rest(Progress p, std::chrono::nanoseconds nap) noexcept override {
    const bool waits = p == Progress::waiting;
    if (waits && !polls_.exchange(true)) return Worker::Rest::again;  // check once more, or a nudge is lost
    if (!waits) polls_.store(false);
    // After a wake-up, work will arrive soon, but the program's thread needs a processor first.
    return doorbells_.sleep(static_cast<std::uint64_t>(nap.count()), waits) ? Worker::Rest::woken : Worker::Rest::slept;
  }
  void wake() noexcept override { doorbells_.knock(); }
  Progress serve_all() noexcept {
    auto result = two_have_much() && hire() ? serve_wide() : serve_in_turn();
    if (evict_.exchange(false, std::memory_order_relaxed)) {
      for (auto& other : queues_) other->evicted = true;
      evicted_ = true;
      result = Progress::progressed;
    }
    return result;
  }
  /// Whether two engines have work that have moved much lately.
  bool two_have_much() noexcept {
    if (!moves_much_.load(std::memory_order_relaxed)) return false;
    const Engine* first = nullptr;
    for (auto& q : queues_) {
      const auto& e = engines_[q->engine.value];
      if (e.much == 0 || &e == first || !q->runs() || !has_work(*q)) continue;
      if (first) return true;
      first = &e;
    }
    return false;
  }
  /// Reads the doorbell. False: nothing is left to do.
  bool has_work(HwQueue& q) noexcept {
    if (q.look()) trace_doorbell(gpu_, q.engine, q.id, q.told());
    return !q.at_rest;
  }
  Progress serve_in_turn() noexcept {
    auto result = Progress::idle;
    for (auto at = next_ < queues_.size() ? std::exchange(next_, 0) : 0; at < queues_.size(); ++at) {
      if (!queues_[at]->runs()) continue;
      if (drive_ == Drive::thread && worker_.wanted()) {
        next_ = at;
        return Progress::progressed;
      }
      result = sdma::detail::busier(result, serve(*queues_[at]));
      if (evict_.load(std::memory_order_relaxed)) break;
    }
    return result;
  }
  /// Each engine looks for a queue with work, and takes one step of it.
  Progress serve_wide() noexcept {
    std::array<Group, kEngines> groups{};
    std::array<Progress, kEngines> progress{};
    std::uint32_t n = 0;
    for (std::size_t at = 0; at < queues_.size(); ++n) {
      const auto first = at;
      while (at < queues_.size() && queues_[at]->engine == queues_[first]->engine) ++at;
      groups[n] = {first, at};
    }
    crew_.share(n, [&](std::uint32_t i) {
      auto p = Progress::progressed;
      for (int steps = 0; steps < kWideSteps && p == Progress::progressed && !worker_.wanted(); ++steps) {
        if (evict_.load(std::memory_order_relaxed)) break;
        p = serve_one(groups[i]);
        progress[i] = sdma::detail::busier(progress[i], p);
      }
    });
    auto result = Progress::idle;
    for (std::uint32_t i = 0; i < n; ++i) result = sdma::detail::busier(result, progress[i]);
    return result;
  }
  Progress serve_one(const Group& g) noexcept {
    auto result = Progress::idle;
    auto& e = engines_[queues_[g.first]->engine.value];
    const auto size = g.end - g.first, begin = e.turn % size;
    for (std::size_t i = 0; i < size && result != Progress::progressed; ++i) {
      const auto at = (begin + i) % size;
      if (!queues_[g.first + at]->runs()) continue;
      e.turn = static_cast<std::uint32_t>(at + 1);
      result = sdma::detail::busier(result, serve(*queues_[g.first + at]));
    }
    return result;
  }
  /// Whether there are threads beside this one for the engines.
  bool hire() noexcept {
    if (drive_ != Drive::thread) return false;
    const auto processors = std::thread::hardware_concurrency();
    if (crew_.size() == 0 && processors > 1) crew_.grow(std::min(processors, kMostThreads) - 1);
    return crew_.size() != 0;
  }
  Progress serve(HwQueue& q) noexcept {
    auto& engine = engines_[q.engine.value];
    if (engine.holder && engine.holder != &q) return Progress::idle;
    auto p = Progress::idle;
    if (has_work(q)) {
      p = q.step();
      if (q.moved() >= kMuch) {
        engine.much = kLittle;
        moves_much_.store(true, std::memory_order_relaxed);
      } else if (engine.much != 0) --engine.much;
      if (p == Progress::progressed && activity_ && q.engine != kComputeEngine)
        __atomic_fetch_add(activity_, 1, __ATOMIC_RELAXED);
      if (p == Progress::idle || p == Progress::stopped) {
        q.at_rest = true;
        p = Progress::progressed;
      }
    }
    engine.holder = !q.at_rest && q.holds_engine() ? &q : nullptr;
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
  AddressSpace& space_;
  std::array<Engine, kEngines> engines_{};
  Doorbells doorbells_;
  Crew crew_;

  Worker worker_;                                 // its lock guards everything from here to evicted_
  std::vector<std::unique_ptr<HwQueue>> queues_;  ///< those of one engine follow each other
  std::size_t next_ = 0;                          ///< where a round begins that follows one that ended early
  std::atomic<bool> evict_{false};                ///< a step has had a VM fault
  std::atomic<bool> moves_much_{false};           ///< an engine has moved much since the thread slept last
  bool evicted_ = false;                       ///< set by a VM fault: queues that are created later do not run either
  bool exempt_ = false;                        ///< the thread is exempt from ThreadSanitizer
  Deadline::Clock::time_point quiet_since_{};  ///< the first round without work after that

  std::atomic<bool> polls_{false};  ///< asleep while a poll waits
};

}  // namespace sdma::emulator
