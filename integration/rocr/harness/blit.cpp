// SPDX-License-Identifier: MIT
// Compiled twice: with the original tree and -DRIG_MAKE=theirs, with the patched one and -DRIG_MAKE=ours;
// -Drocr=NAMESPACE keeps the two apart. RIG_BATCH: this tree has SubmitBatchCopyCommand.
#include "core/runtime/amd_blit_sdma.cpp"

#include <pthread.h>
#include <sched.h>

namespace rocr::os {
Mutex CreateMutex() {
  auto* const m = new pthread_mutex_t;
  pthread_mutex_init(m, nullptr);
  return m;
}
bool TryAcquireMutex(Mutex m) { return pthread_mutex_trylock(static_cast<pthread_mutex_t*>(m)) == 0; }
bool AcquireMutex(Mutex m) { return pthread_mutex_lock(static_cast<pthread_mutex_t*>(m)) == 0; }
void ReleaseMutex(Mutex m) { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(m)); }
void DestroyMutex(Mutex m) {
  pthread_mutex_destroy(static_cast<pthread_mutex_t*>(m));
  delete static_cast<pthread_mutex_t*>(m);
}
void YieldThread() { sched_yield(); }
}  // namespace rocr::os

namespace {

using rocr::AMD::BlitSdmaBase;
using rocr::core::Signal;

struct Here final : rig::Blit {
  explicit Here(rig::State& s) : state(s), sdma(make(s)) { sdma->Initialize(agent, false, s.longest_copy, -1); }
  ~Here() override { sdma->Destroy(agent); }

  static std::unique_ptr<BlitSdmaBase> make(rig::State& s) {
    rig::current = &s;
    if (s.isa[0] == 9) return std::make_unique<rocr::AMD::BlitSdmaV4>();
    return std::make_unique<rocr::AMD::BlitSdmaV5>();
  }
  struct Wrapped {
    explicit Wrapped(const Signals& all) {
      signals.reserve(all.size());
      for (auto* m : all) signals.emplace_back(*m);
      for (auto& s : signals) pointers.push_back(&s);
    }
    std::vector<Signal> signals;
    std::vector<Signal*> pointers;
  };
  template <class Fn> int call(Fn fn) {
    rig::current = &state;
    try {
      return fn();
    } catch (const rocr::AMD::hsa_exception& e) {
      return e.error_code();
    }
  }

  int copy(void* dst, const void* src, std::size_t bytes, const Signals& deps, rig::SignalMemory& out,
           const Signals& gang) override {
    Wrapped d(deps), g(gang);
    Signal o(out);
    return call([&] { return sdma->SubmitLinearCopyCommand(dst, src, bytes, d.pointers, o, g.pointers); });
  }
  int copy(void* dst, const void* src, std::size_t bytes) override {
    return call([&] { return sdma->SubmitLinearCopyCommand(dst, src, bytes); });
  }
  int box(const rig::Box& b, const Signals& deps, rig::SignalMemory& out) override {
    Wrapped d(deps);
    Signal o(out);
    const auto pitched = [](const rig::Box::Side& s) { return hsa_pitched_ptr_t{s.base, s.pitch, s.slice}; };
    const auto offset = [](const rig::Box::Side& s) { return hsa_dim3_t{s.x, s.y, s.z}; };
    const auto to = pitched(b.dst), from = pitched(b.src);
    const auto at = offset(b.dst), begin = offset(b.src);
    const hsa_dim3_t range{b.x, b.y, b.z};
    return call([&] { return sdma->SubmitCopyRectCommand(&to, &at, &from, &begin, &range, d.pointers, o); });
  }
  int batch(const rig::Copy* copies, std::size_t count, const Signals& deps, rig::SignalMemory& out) override {
#ifdef RIG_BATCH
    Wrapped d(deps);
    Signal o(out);
    std::vector<rocr::AMD::SdmaLinearCopy> all;
    for (std::size_t i = 0; i != count; ++i) all.push_back({copies[i].dst, copies[i].src, copies[i].size});
    return call([&] {
      return static_cast<rocr::AMD::BlitSdmaV4&>(*sdma).SubmitBatchCopyCommand(all.data(), count, d.pointers, o);
    });
#else
    for (std::size_t i = 0; i != count; ++i)
      if (const int status = copy(copies[i].dst, copies[i].src, copies[i].size, deps, out, {})) return status;
    return 0;
#endif
  }
  int fill(void* dst, std::uint32_t value, std::size_t count) override {
    return call([&] { return sdma->SubmitLinearFillCommand(dst, value, count); });
  }
  std::uint64_t pending() override { return sdma->PendingBytes(); }
  void leads(bool yes) override { sdma->GangLeader(yes); }

  rig::State& state;
  std::unique_ptr<BlitSdmaBase> sdma;
  rocr::AMD::GpuAgent agent;
};

}  // namespace

std::unique_ptr<rig::Blit> rig::RIG_MAKE(State& s) {
  s.next_internal = 0;
  current = &s;
  return std::make_unique<Here>(s);
}
