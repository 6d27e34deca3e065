// SPDX-License-Identifier: MIT
// From the doorbell to the completion that the host sees, compared with a word that two threads pass back and forth, on
// the same machine, in the same run, with the same way of waiting.
//
//   build/bench/bench-latency            a table; exit code 1 if a ratio is above 3
//
//   warm     both sides spin, so each continues at once
//   parked   the peer sleeps, and a futex wakes it
//   raw      a plain store to the doorbell, on an engine that expects this from the queue; no limit
//   idle     CPU time of a device with idle queues, as a fraction of one core
//
// The two are measured in turn, in short batches, under the same load. The limit applies to the best tenth of the
// batches, which ran while no other program needed the cores; the median is shown beside it.
#include "sdma/device/soft.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

using Clock = Deadline::Clock;

/// The value below which the fraction `part` of them lies.
double quantile(std::vector<double> v, double part) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[static_cast<std::size_t>(static_cast<double>(v.size() - 1) * part)];
}

/// The time of `f` in nanoseconds.
template <class F> double time_of(F f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// A thread that answers: it spins as long as an engine does, then sleeps on a futex, as an engine does.
class Peer {
 public:
  Peer() : thread_([this] { run(); }) {}
  ~Peer() {
    there_.word.store(~0ull);
    knock();
    thread_.join();
  }
  void trip(std::uint64_t n) {
    there_.word.store(n, std::memory_order_release);
    knock();
    std::uint64_t* word = &back_.plain;
    (void)wait(Signal{.word = word}, Compare::eq, n, Deadline::in(10s));
  }

 private:
  /// Makes a system call only if the peer sleeps.
  void knock() {
    knocks_.fetch_add(1, std::memory_order_release);
    knocks_.notify_one();
  }
  void run() {
    auto last = Clock::now();
    for (std::uint64_t seen = 0;;) {
      const auto knocks = knocks_.load(std::memory_order_acquire);
      const auto v = there_.word.load(std::memory_order_acquire);
      if (v == ~0ull) return;
      if (v != seen) {
        seen = v;
        std::atomic_ref(back_.plain).store(v, std::memory_order_release);
        last = Clock::now();
      } else if (Clock::now() - last > 30us) {
        knocks_.wait(knocks, std::memory_order_acquire);
      } else {
        for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
      }
    }
  }
  struct alignas(64) There {
    std::atomic<std::uint64_t> word{0};
  } there_;
  struct alignas(64) Back {
    std::uint64_t plain = 0;
  } back_;
  std::atomic<int> knocks_{0};
  std::thread thread_;
};

struct Lane {
  SignalMemory done;
  Queue queue;
  Ring<> ring;
  std::uint32_t epoch = 0;
  Lane(Device& d, EngineId e) : done(*d.create_signal()), queue(*d.create_queue({.engine = e})), ring(queue.memory()) {}
  void trip() {
    ++epoch;
    if (ring.submit(Fence{.addr = done->va, .value = epoch}) != Errc::ok) std::abort();
    if (!wait(*done, Compare::eq, epoch, Deadline::in(10s))) std::abort();
  }
};

/// Acts as a program that uses rings and doorbells without knowing about software engines.
struct RawLane {
  SignalMemory done;
  Queue queue;
  RingMemory memory;
  Ring<> ring;
  std::uint32_t epoch = 0;
  static RingMemory silent(RingMemory m) { return m.on_doorbell = nullptr, m; }
  RawLane(Device& d, EngineId e)
      : done(*d.create_signal()), queue(*d.create_queue({.engine = e})), memory(silent(queue.memory())), ring(memory) {}
  void trip() {
    ++epoch;
    if (ring.submit(Fence{.addr = done->va, .value = epoch}) != Errc::ok) std::abort();
    if (!wait(*done, Compare::eq, epoch, Deadline::in(10s))) std::abort();
  }
};

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

double idle_share(Device& d, std::uint32_t gpus) {
  std::vector<Queue> queues;
  for (std::uint32_t g = 0; g < gpus; ++g)
    for (std::uint32_t e = 0; e < 16; ++e) queues.push_back(*d.create_queue({.gpu = GpuId{g}, .engine = EngineId{e}}));
  std::this_thread::sleep_for(300ms);
  const auto before = cpu_seconds();
  std::this_thread::sleep_for(2s);
  return (cpu_seconds() - before) / 2;
}

}  // namespace

int main() {
  std::vector<double> pong_warm, ring_warm, pong_parked, ring_parked, raw;
  {
    auto device = *SoftDevice::open({.gpus = 1});
    Lane lane(*device, EngineId{0});
    RawLane raw_lane(*device, EngineId{1});
    Peer peer;
    std::uint64_t n = 0;
    const auto pong = [&](int trips) {
      return time_of([&] {
               for (int i = 0; i < trips; ++i) peer.trip(++n);
             }) /
             trips;
    };
    const auto ring = [&](int trips) {
      return time_of([&] {
               for (int i = 0; i < trips; ++i) lane.trip();
             }) /
             trips;
    };
    for (int batch = 0; batch < 400; ++batch) {
      constexpr int kTrips = 200;
      (void)pong(50);  // wakes the peer
      pong_warm.push_back(pong(kTrips));
      std::this_thread::sleep_for(200us);  // meanwhile, the other side's thread must not spin
      (void)ring(50);
      ring_warm.push_back(ring(kTrips));
      std::this_thread::sleep_for(2ms);
      pong_parked.push_back(pong(1));
      std::this_thread::sleep_for(2ms);
      ring_parked.push_back(ring(1));
      std::this_thread::sleep_for(2ms);
      raw.push_back(time_of([&] { raw_lane.trip(); }));
    }
  }
  fmt::print(
      "ns              ping-pong          doorbell to host   ratio\n"
      "            best 10 %  median   best 10 %  median   best 10 %  median\n");
  bool good = true;
  const auto row = [&](const char* what, const std::vector<double>& a, const std::vector<double>& b) {
    const auto best = quantile(b, 0.1) / quantile(a, 0.1);
    good = good && best <= 3;
    fmt::print("{:<8}{:>13.0f}{:>8.0f}{:>12.0f}{:>8.0f}{:>12.2f}{:>8.2f}\n", what, quantile(a, 0.1), quantile(a, 0.5),
               quantile(b, 0.1), quantile(b, 0.5), best, quantile(b, 0.5) / quantile(a, 0.5));
  };
  row("warm", pong_warm, ring_warm);
  row("parked", pong_parked, ring_parked);
  fmt::print("{:<8}{:>33.0f}{:>8.0f}\n", "raw", quantile(raw, 0.1), quantile(raw, 0.5));
  for (const int interval : {50, 0}) {
    auto device = *SoftDevice::open({.gpus = 8, .scan_interval = std::chrono::milliseconds(interval)});
    fmt::print("idle: 128 engines, scan {:>2} ms: {:.4f} % of a core\n", interval, 100 * idle_share(*device, 8));
  }
  return good ? 0 : 1;
}
