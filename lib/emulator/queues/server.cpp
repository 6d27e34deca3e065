#include "server.hpp"

#include "../options.hpp"

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

namespace sdma::emulator {
namespace {

constexpr std::uint64_t kSpin = 50'000, kFirstNap = 20'000, kLongestNap = 1'000'000;  // ns

std::uint64_t now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

/// Not a yield: on a machine that is busy with others it would give away milliseconds.
void pause() noexcept {
#if defined(__x86_64__)
  for (int i = 0; i < 16; ++i) __builtin_ia32_pause();
#elif defined(__aarch64__)
  for (int i = 0; i < 16; ++i) asm volatile("yield");
#endif
}

}  // namespace

Server::Server(GpuId g, std::uint32_t gpu_id, AddressSpace& space, Events& events, const DoorbellPage& page,
               std::function<void()> worked, Drive drive)
    : gpu_(g),
      gpu_id_(gpu_id),
      drive_(drive),
      worked_(std::move(worked)),
      events_(events),
      reader_(space, g),
      doorbells_(page) {}

void Server::change(const std::function<void()>& fn) {
  asked_.fetch_add(1, std::memory_order_relaxed);
  doorbells_.knock();
  {
    const std::lock_guard lock(mutex_);
    fn();
    holders_.fill(nullptr);
    // All are mapped anew: what a doorbell said meanwhile is gone, and wptr is honoured.
    for (auto& q : queues_) q->map();
    if (!queues_.empty() && !started_ && drive_ == Drive::thread) start();
    doorbells_.mappings_changed();
  }
  asked_.fetch_sub(1, std::memory_order_release);
  doorbells_.knock();
}

void Server::add(std::unique_ptr<HwQueue> q) {
  q->evicted = evicted_;
  queues_.push_back(std::move(q));
  // Neighbours on an engine are served one after another.
  std::stable_sort(queues_.begin(), queues_.end(), [](const auto& a, const auto& b) { return a->engine < b->engine; });
}

std::unique_ptr<HwQueue> Server::remove(std::uint32_t id) {
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
  std::fprintf(stderr, "sdma emulator: %s\n", describe(f).c_str());
  trace_fault(f);
  if (f.kind == FaultKind::unmapped || f.kind == FaultKind::read_only)
    vm_fault(f.va, f.access, f.kind == FaultKind::read_only);
}

void Server::vm_fault(GpuVa va, Access, bool mapped) noexcept {
  evict_ = true;
  kfd::MemoryException e{};
  e.not_present = !mapped;
  e.read_only = mapped;
  e.va = va.value & ~std::uint64_t{4095};
  e.gpu_id = gpu_id_;
  events_.memory_fault(e);
}

void Server::start() {
  started_ = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread t([this] { run(); });
  char name[16];
  std::snprintf(name, sizeof name, "sdma gpu%u", gpu_.value);
  pthread_setname_np(t.native_handle(), name);
  t.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress Server::turn() noexcept {
  const std::lock_guard lock(mutex_);
  return round();
}

void Server::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (asked_.load(std::memory_order_acquire) != 0) {
      lock.unlock();
      while (asked_.load(std::memory_order_acquire) != 0) std::this_thread::yield();  // whoever asked must run
      lock.lock();
      last_work_ = 0;
      continue;
    }
    const auto p = round();
    if (p == Progress::progressed) {
      last_work_ = 0;
      doorbells_.awake();
      worked_();
      continue;
    }
    lock.unlock();
    rest(p);
    lock.lock();
  }
}

Progress Server::round() noexcept {
  auto result = Progress::idle;
  for (auto& q : queues_) {
    if (!q->runs()) continue;
    auto*& holder = holders_[q->engine.value];
    if (holder && holder != q.get()) continue;
    const auto p = serve(*q);
    holder = !q->at_rest && q->holds_engine() ? q.get() : nullptr;
    if (p == Progress::progressed || result == Progress::idle) result = p;
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
  if (p == Progress::idle || p == Progress::stopped) {
    q.at_rest = true;
    return Progress::progressed;
  }
  return p;
}

void Server::nudge() noexcept {
  if (polls_.load(std::memory_order_relaxed)) doorbells_.knock();
}

void Server::rest(Progress p) noexcept {
  const auto t = now();
  if (last_work_ == 0) {
    last_work_ = t;
    nap_ = kFirstNap;
  }
  if (options().watch == Watch::spin || t - last_work_ < kSpin) return pause();
  const bool waits = p == Progress::waiting;
  if (waits && !polls_.exchange(true)) return;  // one more look behind it, or a nudge is lost
  if (!waits) polls_.store(false);
  if (doorbells_.sleep(nap_, waits)) last_work_ = 0;  // work is near: the program's thread has to get a processor first
  else nap_ = std::min(nap_ * 2, kLongestNap);
}

}  // namespace sdma::emulator
