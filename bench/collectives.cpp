// SPDX-License-Identifier: MIT
// The collectives on the software device: beside the same memcpys by plain threads, and their cost to the host thread.
//
//   build/bench/bench-collectives [ROUNDS]
//
//   size     all_gather and all_to_all among 8 GPUs, b2b and pcpy, from start until the host has seen the last
//            completion; compared with 8 threads, one per GPU, that one store releases; each does that GPU's memcpys
//            and counts itself off. The two take turns; the best of ROUNDS counts. Both use buffers of the same size,
//            with every page touched.
//   host     reading the plan of an 8-GPU schedule from its text, which should take at most 300 us; its publishing, in
//            nanoseconds per packet; the cost of a trigger after engines have
//            idled at their polls, and the median from then until the host has seen the last completion
//   bind     memory, signals and queues of such a schedule, on a device whose engines have no thread yet (first), and
//            on one whose engines have threads (again); and the linker alone, in nanoseconds per packet: the added time
//            of 1000 times as many packets on the same objects
#include "collectives/collectives.hpp"
#include "core/median.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/sync/wait.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

namespace collectives { namespace {

using namespace std::chrono_literals;
using Clock = sdma::Deadline::Clock;

sdma::Deadline soon() { return sdma::Deadline::in(120s); }
[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}
template <class F> double seconds(F f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Does the moves of a plan, with one thread per source.
class Threads {
 public:
  explicit Threads(const Run& r) {
    for (std::uint32_t g = 0; g < r.plan().options.gpus; ++g) {
      std::vector<Copy> mine;
      for (const auto& m : r.plan().moves)
        if (m.src == g)
          mine.push_back({r.bound().bytes({m.to, m.bytes}).data(), r.bound().bytes({m.from, m.bytes}).data(), m.bytes});
      threads_.emplace_back([this, mine] { work(mine); });
    }
  }
  ~Threads() {
    round_.store(-1);
    for (auto& t : threads_) t.join();
  }
  void go() {
    left_.store(static_cast<int>(threads_.size()));
    round_.fetch_add(1, std::memory_order_release);
    for (sdma::Backoff b; left_.load(std::memory_order_acquire) != 0;) (void)b.step(soon());
  }

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::uint64_t bytes;
  };
  void work(const std::vector<Copy>& mine) {
    for (int seen = 0;;) {
      sdma::Backoff b;
      auto now = seen;
      while ((now = round_.load(std::memory_order_acquire)) == seen) (void)b.step(soon());
      if (now < 0) return;
      seen = now;
      for (const auto& c : mine) std::memcpy(c.to, c.from, c.bytes);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }
  std::atomic<int> round_ = 0, left_ = 0;
  std::vector<std::thread> threads_;
};

Run prepared(const Options& o, sdma::Device& d) {
  auto p = plan(o);
  if (!p) fail(to_string(p.error()));
  auto r = Run::prepare(*p, d);
  if (!r) fail(to_string(r.error().front()));
  r->fill(1);
  return std::move(*r);
}

void check(const Run& r) {
  if (const auto c = r.check(); !c) fail(c.first);
}

void sizes(sdma::Device& d, unsigned rounds) {
  std::printf("%-11s %-5s %10s %12s %12s %7s\n", "", "", "chunk", "device us", "threads us", "ratio");
  for (const auto c : {Collective::all_gather, Collective::all_to_all})
    for (const auto v : {Variant::b2b, Variant::pcpy})
      for (std::uint64_t chunk = 64 << 10; chunk <= 4 << 20; chunk *= 4) {
        auto r = prepared({.collective = c, .variant = v, .gpus = 8, .bytes = 8 * chunk}, d);
        double device = 1e9, plain = 1e9;
        {
          Threads threads{r};
          for (unsigned i = 0; i < rounds; ++i) {
            device = std::min(device, seconds([&] {
                                if (auto e = r.once(soon()); !e) fail(to_string(e.error()));
                              }));
            plain = std::min(plain, seconds([&] { threads.go(); }));
          }
        }
        check(r);
        std::printf("%-11s %-5s %9luK %12.0f %12.0f %7.2f\n", std::string(name(c)).c_str(),
                    std::string(name(v)).c_str(), static_cast<unsigned long>(chunk >> 10), device * 1e6, plain * 1e6,
                    device / plain);
      }
}

void host(sdma::Device& d, unsigned rounds) {
  std::printf("\n%-11s %-5s %8s %12s %14s %12s %12s\n", "", "", "packets", "plan us", "publish ns/pkt", "trigger ns",
              "to done us");
  for (const auto v : {Variant::pcpy, Variant::bcst, Variant::b2b}) {
    const Options o{.collective = Collective::all_gather,
                    .variant = v,
                    .prelaunch = Prelaunch::shared,
                    .gpus = 8,
                    .bytes = 8 << 10};
    std::vector<double> answers;
    double planning = 1e9, publishing = 1e9, triggering = 1e9, packets = 0;
    for (unsigned i = 0; i < rounds; ++i) {
      planning = std::min(planning, seconds([&] { (void)plan(o); }));
      const auto p = *plan(o);
      packets = 0;
      for (const auto& count : p.counts) packets += count.data + count.completions + count.polls;
      auto r = prepared(o, d);
      publishing = std::min(publishing, seconds([&] { (void)r.refill(soon()); }));
      for (int round = 0; round < 2; ++round) {
        std::this_thread::sleep_for(2ms);
        answers.push_back(seconds([&] {
          triggering = std::min(triggering, seconds([&] { (void)r.start(soon()); }));
          if (auto e = r.wait(soon()); !e) fail(to_string(e.error()));
        }));
      }
    }
    std::printf("%-11s %-5s %8.0f %12.0f %14.0f %12.0f %12.0f\n", "all_gather", std::string(name(v)).c_str(), packets,
                planning * 1e6, publishing * 1e9 / packets, triggering * 1e9, sdma::detail::median(answers) * 1e6);
  }
}

/// A schedule of 8 GPUs with 8 MiB in packets of this size.
Plan cut(Variant v, std::uint32_t packet_bytes, std::uint64_t ring_bytes) {
  auto p = plan({.collective = Collective::all_gather,
                 .variant = v,
                 .gpus = 8,
                 .bytes = 8 << 20,
                 .packet_bytes = packet_bytes,
                 .ring_bytes = ring_bytes});
  if (!p) fail(to_string(p.error()));
  return *std::move(p);
}

double packets_of(const Plan& p) {
  double n = 0;
  for (const auto& count : p.counts) n += count.data + count.completions + count.polls;
  return n;
}

/// Seconds to bind it, without its destruction.
double binding(const Plan& p, sdma::Device& d) {
  std::optional<sdma::Result<sdma::Bound, std::vector<sdma::Diagnostic>>> bound;
  const auto took = seconds([&] { bound.emplace(sdma::bind(p.schedule, d)); });
  if (!*bound) fail(to_string(bound->error().front()));
  return took;
}

void bind(sdma::Device& d, unsigned rounds) {
  std::printf("\n%-11s %-5s %8s %10s %10s %14s\n", "", "", "queues", "first us", "again us", "linker ns/pkt");
  for (const auto v : {Variant::pcpy, Variant::bcst, Variant::b2b}) {
    const auto usual = cut(v, 1 << 20, 0), few = cut(v, 1 << 20, 1 << 20), many = cut(v, 1 << 10, 1 << 20);
    double first = 1e9, again = 1e9, least = 1e9, most = 1e9;
    for (unsigned i = 0; i < rounds; ++i) {
      const auto fresh = sdma::SoftDevice::open();
      if (!fresh) fail(to_string(fresh.error()));
      first = std::min(first, binding(usual, **fresh));
      again = std::min(again, binding(usual, d));
      least = std::min(least, binding(few, d));
      most = std::min(most, binding(many, d));
    }
    std::printf("%-11s %-5s %8zu %10.0f %10.0f %14.0f\n", "all_gather", std::string(name(v)).c_str(),
                usual.schedule.queues.size(), first * 1e6, again * 1e6,
                (most - least) / (packets_of(many) - packets_of(few)) * 1e9);
  }
}

}}  // namespace collectives

int main(int argc, char** argv) {
  const auto rounds = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 0)) : 30u;
  const auto d = sdma::SoftDevice::open();
  if (!d) collectives::fail(to_string(d.error()));
  collectives::sizes(**d, rounds);
  collectives::host(**d, rounds);
  collectives::bind(**d, rounds);
}
