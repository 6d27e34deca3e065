// SPDX-License-Identifier: MIT
#include "server.hpp"

#include "../options.hpp"
#include "../pace.hpp"
#include "../thread_sanitizer.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <utility>

namespace sdma::emulator {
Server::Server(GpuId g, std::uint32_t gpu_id, AddressSpace& space, Events& events, const DoorbellPage& page,
               std::uint64_t* activity, std::function<void()> worked, Drive drive)
    : gpu_(g),
      gpu_id_(gpu_id),
      drive_(drive),
      activity_(activity),
      worked_(std::move(worked)),
      events_(events),
      reader_(space, g),
      doorbells_(page),
      worker_(*this, kNodePace) {}

Server::~Server() { worker_.stop(); }

void Server::unmap() noexcept {
  doorbells_.knock();
  worker_.lock();
}

void Server::map() noexcept {
  holders_.fill(nullptr);
  // All queues are mapped again: doorbells that were rung meanwhile are lost, and wptr counts.
  for (auto& q : queues_) q->map();
  doorbells_.mappings_changed();
  worker_.unlock();
  doorbells_.knock();
}

void Server::make_room() {
  doorbells_.knock();
  const std::lock_guard lock(worker_);
  queues_.reserve(queues_.size() + 1);
  if (worker_.started() || drive_ != Drive::thread) return;
  char name[16];
  std::snprintf(name, sizeof name, "sdma gpu%u", gpu_.value);
  worker_.start(name);
}

void Server::add(std::unique_ptr<HwQueue> q) noexcept {
  q->evicted = evicted_;
  // Queues of one engine are served one after another.
  const auto at = std::upper_bound(queues_.begin(), queues_.end(), q->engine,
                                   [](EngineId e, const auto& other) { return e < other->engine; });
  queues_.insert(at, std::move(q));
}

std::unique_ptr<HwQueue> Server::remove(std::uint32_t id) noexcept {
  const auto at = std::find_if(queues_.begin(), queues_.end(), [id](const auto& q) { return q->id == id; });
  if (at == queues_.end()) return nullptr;
  auto q = std::move(*at);
  queues_.erase(at);
  return q;
}

HwQueue* Server::find(std::uint32_t id) noexcept {
  for (auto& q : queues_)
    if (q->id == id) return q.get();
  return nullptr;
}

PipelineHooks Server::hooks() noexcept {
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

void Server::on_fault(const Fault& f) noexcept {
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

void Server::vm_fault(GpuVa va, bool mapped) noexcept {
  evict_ = true;
  kfd::MemoryException e{};
  e.not_present = !mapped;
  e.read_only = mapped;
  e.va = va.value & ~std::uint64_t{4095};
  e.gpu_id = gpu_id_;
  events_.memory_fault(e);
}

Progress Server::turn() noexcept {
  const std::lock_guard lock(worker_);
  return serve_all();
}

Progress Server::round() noexcept {
  if (!std::exchange(exempt_, true)) exempt_this_thread();
  const auto p = serve_all();
  if (p == Progress::progressed) {
    doorbells_.awake();
    worked_();
  }
  return p;
}

Progress Server::serve_all() noexcept {
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

Progress Server::serve(HwQueue& q) noexcept {
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

void Server::nudge() noexcept {
  if (polls_.load(std::memory_order_relaxed)) doorbells_.knock();
}

bool Server::spin(bool fresh) noexcept { return fresh || options().watch == Watch::spin; }

Server::Worker::Rest Server::rest(Progress p, std::chrono::nanoseconds nap) noexcept {
  const bool waits = p == Progress::waiting;
  if (waits && !polls_.exchange(true)) return Worker::Rest::again;  // check once more, or a nudge is lost
  if (!waits) polls_.store(false);
  // After a wake-up, work will arrive soon, but the program's thread needs a processor first.
  return doorbells_.sleep(static_cast<std::uint64_t>(nap.count()), waits) ? Worker::Rest::woken : Worker::Rest::slept;
}

}  // namespace sdma::emulator
