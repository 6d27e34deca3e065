// SPDX-License-Identifier: MIT
// Waves put tiles to a peer through a ring that they write themselves; bytes are compared in every round.
//
//   kernel_puts                                       threads stand in for waves, a software engine copies
//   kernel_puts --device=rocr --module=tiles.co       kernels on one or two AMD GPUs, through HIP
//   kernel_puts --device=cuda --module=tiles.ptx      kernels on one or two NVIDIA GPUs, whose copy engines copy
//   kernel_puts --device=cuda --module=tiles.ptx --measure   time of one put, beside the host's and the kernel's stores
//   kernel_puts --device=cuda --module=tiles.ptx --beside    their energy, and what they cost a kernel that computes
//
// With two GPUs, the kernel runs on GPU 0 and the tiles go to GPU 1. Exit code 1: a wrong word, or a wave that gave up.
#include "../../lib/device/energy_counters.hpp"
#include "../../lib/device/gpu_kernels.hpp"
#include "../support.hpp"
#include "host.hpp"
#include "sdma/core/file.hpp"
#include "sdma/device/cuda.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

using namespace sdma;
using detail::GpuKernels;
using detail::GpuRuntime;
using example::fail;
using example::must;
using example::Tiles;
using example::TileScene;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "soft", module;
  std::uint32_t waves = 8, rounds = 100, bytes = 4096, ring_bytes = 1024;
  bool measure = false, beside = false;
};

/// What a run needs, on the device.
struct Scene : TileScene {
  std::uint32_t waves;

  Scene(Device& d, const Options& o, std::uint32_t most_bytes)
      : TileScene(must(make(d, {.waves = o.waves,
                                .rounds = o.rounds,
                                .bytes = o.bytes,
                                .ring_bytes = o.ring_bytes,
                                .from = at(0, most_bytes),
                                .to = at(d.topology().gpus.size() > 1 ? 1 : 0, most_bytes)}))),
        waves(o.waves) {}
  static MemoryRequest at(std::uint32_t gpu, std::uint64_t bytes) {
    return {.where = GpuId{gpu}, .bytes = bytes, .host_access = false};
  }
  /// All words 0, for the next run.
  void clear() { std::fill_n(words.host().data(), words.host().size(), std::byte{}); }
  /// Ends the program if a run was wrong.
  void check() const {
    if (*tiles.failed != 0) fail(fmt::format("a wave gave up: {}", message(static_cast<Errc>(*tiles.failed))));
    if (*tiles.wrong != 0) fail(fmt::format("{} words are wrong", *tiles.wrong));
  }
};

/// The kernels of tiles.hip on GPU 0.
class Kernels {
 public:
  static constexpr std::uint32_t kMostBlocks = 132;  ///< of store_tiles: those that run at once

  Kernels(DeviceKind d, const std::string& module)
      : gpu_(must(
            GpuKernels::load(d == DeviceKind::cuda ? GpuRuntime::cuda : GpuRuntime::hip, must(read_file(module))))),
        lanes_(d == DeviceKind::cuda ? 32 : 64),
        ring_(static_cast<std::byte*>(must(gpu_.allocate(sizeof(Ring<Producers::many>) + 4 * kMostBlocks)))) {}
  /// Makes the ring's state in the GPU's memory.
  void attach(RingMemory m) {
    start(gpu_.stream(), "make_ring", 1, lanes_, ring_, m, arrived(), kMostBlocks);
    wait();
  }
  void put(std::uint32_t waves, Tiles t) { start(gpu_.stream(), "put_all_tiles", waves, lanes_, ring_, t); }
  void store(std::uint32_t blocks, Tiles t) {
    start(gpu_.stream(), "store_tiles", blocks, 512, t, std::uint64_t{t.bytes / 4}, arrived());
  }
  /// Until what was put or stored is complete.
  void wait() { must(gpu_.wait(gpu_.stream())); }
  /// Starts a kernel that computes on every compute unit, and waits for it alone.
  void compute(std::uint32_t loops) {
    start(gpu_.second_stream(), "compute", 4 * kMostBlocks, 256, arrived(), loops);
    must(gpu_.wait(gpu_.second_stream()));
  }

 private:
  std::byte* arrived() const { return ring_ + sizeof(Ring<Producers::many>); }
  template <class... A> void start(GpuKernels::Stream s, const char* name, unsigned blocks, unsigned threads, A... a) {
    must(gpu_.start(s, name, blocks, threads, a...));
  }
  GpuKernels gpu_;
  unsigned lanes_;  ///< of a wave
  std::byte* ring_;
};

double per_round(std::uint32_t rounds, auto run) {
  const auto begin = Clock::now();
  run();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / rounds;
}

/// The best of seven.
double best(auto measure) {
  double least = measure();
  for (int i = 0; i < 6; ++i) least = std::min(least, measure());
  return least;
}

/// A put by the host into a queue of its own.
double put_by_host(Device& d, const Options& o, const Scene& s, std::uint32_t bytes, bool for_kernels) {
  auto queue = must(d.create_queue({.gpu = GpuId{0}, .ring_bytes = o.ring_bytes, .for_kernels = for_kernels}));
  auto signal = must(d.create_signal());
  Ring<> ring(queue.memory());
  const auto word = *signal;
  std::uint32_t epoch = 0;
  return best([&] {
    return per_round(o.rounds, [&] {
      for (std::uint32_t i = 0; i < o.rounds; ++i) {
        const CopyLinear copy{.src = s.tiles.src, .dst = s.tiles.dst, .bytes = bytes};
        must(ring.submit(copy, Fence{.addr = word.va, .value = ++epoch}));
        while (low_half(word.load()) != epoch) SDMA_PAUSE();
      }
    });
  });
}

/// Those that store a tile.
std::uint32_t blocks_of(std::uint32_t bytes) { return std::clamp(bytes / 8192, 1u, Kernels::kMostBlocks); }

void measure(Device& d, Kernels& kernels, const Options& o) {
  constexpr std::uint32_t kMost = 64 << 20;
  auto one = o;
  one.waves = 1;
  Scene s(d, one, kMost);
  kernels.attach(s.queue.memory());
  fmt::print(
      "us from the doorbell until its wave or thread sees the flag, best of 7 runs of {} rounds\n"
      "{:>10} {:>8} {:>8} {:>12} {:>8}\n",
      o.rounds, "bytes", "kernel", "host", "host, scan", "stores");
  for (std::uint32_t bytes = 1024; bytes <= kMost; bytes *= 4) {
    s.tiles.bytes = bytes;
    s.tiles.check = false;
    const auto by_kernel = best([&] {
      s.clear();
      return per_round(o.rounds, [&] { kernels.put(1, s.tiles), kernels.wait(); });
    });
    s.check();
    const auto by_stores = best([&] {
      s.clear();
      kernels.attach(s.queue.memory());  // and the counter of the waves that arrived is 0
      return per_round(o.rounds, [&] { kernels.store(blocks_of(bytes), s.tiles), kernels.wait(); });
    });
    s.check();
    fmt::print("{:>10} {:>8.2f} {:>8.2f} {:>12.2f} {:>8.2f}\n", bytes, by_kernel, put_by_host(d, o, s, bytes, false),
               put_by_host(d, o, s, bytes, true), by_stores);
    std::fflush(stdout);
  }
}

/// Energy of a movement, and what it does to a kernel that computes meanwhile.
void beside(Device& d, Kernels& kernels, const Options& o) {
  using Seconds = std::chrono::duration<double>;
  constexpr std::uint32_t kMost = 64 << 20, kLoops = 16'000'000;
  constexpr double kMovement = 1.5e6;  // us: longer than the kernel beside it
  auto one = o;
  one.waves = 1;
  Scene s(d, one, kMost);
  s.tiles.check = false;
  std::set<std::string> pci;
  for (const auto& g : dynamic_cast<CudaDevice&>(d).gpus()) pci.insert(g.pci);
  const auto counters = must(detail::nvml_counters("--beside", {pci.begin(), pci.end()}));
  const auto joules = [&] {
    double all = 0;
    for (const auto& c : counters) all += must(c());
    return all;
  };
  const auto before = joules();
  std::this_thread::sleep_for(std::chrono::seconds{2});
  const auto idle = (joules() - before) / 2;
  const auto computed = [&] {
    return per_round(4, [&] {
      for (int i = 0; i < 4; ++i) kernels.compute(kLoops);
    });
  };
  fmt::print("{:.1f} W idle\n{:>10} {:>8} {:>10} {:>10} {:>12} {:>10}\n", idle, "bytes", "by", "us", "nJ/byte",
             "compute, us", "beside");
  for (const std::uint32_t bytes : {64u << 10, 4u << 20, kMost})
    for (const bool stores : {false, true}) {
      s.tiles.bytes = bytes;
      const auto begin = [&](std::uint32_t rounds) {
        s.clear();
        s.tiles.rounds = rounds;
        kernels.attach(s.queue.memory());
        stores ? kernels.store(blocks_of(bytes), s.tiles) : kernels.put(1, s.tiles);
      };
      const auto move = [&](std::uint32_t rounds) { return per_round(rounds, [&] { begin(rounds), kernels.wait(); }); };
      const auto rounds = static_cast<std::uint32_t>(kMovement / move(20)) + 1;
      const auto energy = joules();
      const auto us = move(rounds);
      const auto used = joules() - energy - idle * us * rounds / 1e6;
      computed();  // the GPU's clock settles
      const auto alone = computed();
      begin(rounds);
      std::this_thread::sleep_for(Seconds{kMovement / 1e7});
      const auto slowed = computed();
      kernels.wait();
      s.check();
      fmt::print("{:>10} {:>8} {:>10.2f} {:>10.3f} {:>12.0f} {:>+8.1f} %\n", bytes, stores ? "stores" : "puts", us,
                 used * 1e9 / rounds / bytes, alone, 100 * (slowed / alone - 1));
      std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Waves put tiles to a peer through a ring that they write themselves."};
  app.add_option("--device", o.device, "soft, kfd, rocr or cuda")
      ->check(CLI::IsMember({"soft", "kfd", "rocr", "cuda"}))
      ->capture_default_str();
  app.add_option("--module", o.module, "tiles.hip compiled for the GPU: PTX, or a code object for HIP");
  app.add_option("--waves", o.waves, "waves (blocks, or threads of the host)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--rounds", o.rounds, "tiles that each wave puts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--bytes", o.bytes, "bytes of a tile, a multiple of 4")
      ->check(CLI::Range(4, 1 << 26))
      ->capture_default_str();
  app.add_option("--ring-bytes", o.ring_bytes, "bytes of the ring, a power of two from 1024 on")->capture_default_str();
  app.add_flag("--measure", o.measure, "times of one put, 1 KiB to 64 MiB (--device=cuda)");
  app.add_flag("--beside", o.beside, "energy of puts and of stores, and a kernel that computes beside (--device=cuda)");
  CLI11_PARSE(app, argc, argv);
  if (o.bytes % 4 != 0) fail("--bytes: a tile is whole dwords");
  const bool cuda = o.device == "cuda";
  const bool kernels_run = !o.module.empty();
  if (cuda && !kernels_run) fail("--device=cuda needs --module=FILE");
  if (kernels_run && !cuda && o.device != "rocr") fail("--module is for --device=cuda and --device=rocr");
  if ((o.measure || o.beside) && !cuda) fail("--measure and --beside are for --device=cuda");
  auto device = must(open_device(*device_kind(o.device), {.soft = {.gpus = 2}}));
  if (!kernels_run) {
    Scene s(*device, o, o.waves * o.bytes);
    example::put_by_threads(s.queue, s.tiles, s.waves);
    s.check();
  } else {
    Kernels kernels(*device_kind(o.device), o.module);
    if (o.measure || o.beside) {
      (o.beside ? beside : measure)(*device, kernels, o);
      return example::printed();
    }
    Scene s(*device, o, o.waves * o.bytes);
    kernels.attach(s.queue.memory());
    kernels.put(o.waves, s.tiles);
    kernels.wait();
    s.check();
  }
  fmt::print("{} waves put {} tiles of {} bytes each through a ring of {} bytes: no wrong word\n", o.waves, o.rounds,
             o.bytes, o.ring_bytes);
  return example::printed();
}
