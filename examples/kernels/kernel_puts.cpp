// SPDX-License-Identifier: MIT
// Waves put tiles to a peer through a ring that they write themselves; bytes are compared in every round.
//
//   kernel_puts                                       threads stand in for waves, a software engine copies
//   kernel_puts --device=cuda --ptx=tiles.ptx         kernels on one or two GPUs, whose copy engines copy
//   kernel_puts --device=cuda --ptx=tiles.ptx --measure    time of one put, beside the host's and the kernel's stores
//   kernel_puts --device=cuda --ptx=tiles.ptx --beside     their energy, and what they cost a kernel that computes
//
// With two GPUs, the kernel runs on GPU 0 and the tiles go to GPU 1. Exit code 1: a wrong word, or a wave that gave up.
#include "../collectives/perf/cuda_library.hpp"
#include "../collectives/perf/energy_counters.hpp"
#include "../support.hpp"
#include "sdma/core/file.hpp"
#include "sdma/device/cuda.hpp"
#include "tiles.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

using namespace sdma;
using collectives::perf::CudaLibrary;
using example::fail;
using example::must;
using example::Tiles;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "soft", ptx;
  std::uint32_t waves = 8, rounds = 100, bytes = 4096, ring_bytes = 1024;
  bool measure = false, beside = false;
};

/// What a run needs, on the device.
struct Scene {
  std::uint32_t waves;
  Memory from, to, words;
  Queue queue;
  Tiles tiles;

  Scene(Device& d, const Options& o, std::uint32_t most_bytes)
      : waves(o.waves),
        from(must(d.allocate(at(d, 0, most_bytes)))),
        to(must(d.allocate(at(d, d.topology().gpus.size() > 1 ? 1 : 0, most_bytes)))),
        words(must(d.allocate({.bytes = o.waves * 128ull + 64, .purpose = Purpose::words}))),
        queue(must(d.create_queue({.gpu = GpuId{0}, .ring_bytes = o.ring_bytes, .for_kernels = true}))) {
    auto* const counters = reinterpret_cast<std::uint32_t*>(words.host().data() + o.waves * 128ull);
    // Kernels see memory where engines do; threads see it where the host does.
    const auto seen = [](const Memory& m) {
      return m.host().empty() ? reinterpret_cast<std::uint32_t*>(m.va().value)
                              : reinterpret_cast<std::uint32_t*>(m.host().data());
    };
    tiles = {.from = seen(from),
             .to = seen(to),
             .src = from.va(),
             .dst = to.va(),
             .bytes = o.bytes,
             .rounds = o.rounds,
             .loads = 50'000'000,
             .words = reinterpret_cast<std::uint64_t*>(words.host().data()),
             .words_va = words.va(),
             .wrong = counters,
             .failed = counters + 1};
  }
  static MemoryRequest at(const Device&, std::uint32_t gpu, std::uint64_t bytes) {
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

  explicit Kernels(const std::string& ptx) : cuda_(must(CudaLibrary::load())) {
    if (auto d = cuda_.lacking()) fail(to_string(*d));
    CudaLibrary::Context context{};
    const auto text = must(read_file(ptx));
    call("cuDevicePrimaryCtxRetain", cuda_.retain_context(&context, 0));
    call("cuCtxPushCurrent", cuda_.push_context(context));
    for (auto* s : {&stream_, &second_})
      call("cuStreamCreateWithPriority", cuda_.stream_create(s, CudaLibrary::kNonBlocking, 0));
    call("cuModuleLoadData", load_(&module_, text.c_str()));
    call("cuMemAlloc", allocate_(&ring_, sizeof(Ring<Producers::many>) + 4 * kMostBlocks));
  }
  /// Makes the ring's state in the GPU's memory.
  void attach(RingMemory m) {
    start(stream_, "make_ring", 1, 32, ring_, m, arrived(), kMostBlocks);
    wait();
  }
  void put(std::uint32_t waves, Tiles t) { start(stream_, "put_all_tiles", waves, 32, ring_, t); }
  void store(std::uint32_t blocks, Tiles t) {
    start(stream_, "store_tiles", blocks, 512, t, std::uint64_t{t.bytes / 4}, arrived());
  }
  /// Until what was put or stored is complete.
  void wait() { call("cuStreamSynchronize", wait_(stream_)); }
  /// Starts a kernel that computes on every compute unit, and waits for it alone.
  void compute(std::uint32_t loops) {
    start(second_, "compute", 4 * kMostBlocks, 256, arrived(), loops);
    call("cuStreamSynchronize", wait_(second_));
  }

 private:
  CudaLibrary::Pointer arrived() const { return ring_ + sizeof(Ring<Producers::many>); }
  void call(const char* name, CudaLibrary::Status s) const {
    if (const auto r = cuda_.good(name, s); !r) fail(to_string(r.error()));
  }
  template <class... A>
  void start(CudaLibrary::Stream stream, const char* name, unsigned blocks, unsigned threads, A... a) {
    void *kernel = nullptr, *arguments[] = {&a...};
    call("cuModuleGetFunction", function_(&kernel, module_, name));
    call("cuLaunchKernel", launch_(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  }
  CudaLibrary cuda_;
  CudaLibrary::Status (*load_)(void**, const void*) = cuda_["cuModuleLoadData"];
  CudaLibrary::Status (*function_)(void**, void*, const char*) = cuda_["cuModuleGetFunction"];
  CudaLibrary::Status (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                 void**, void**) = cuda_["cuLaunchKernel"];
  CudaLibrary::Status (*wait_)(void*) = cuda_["cuStreamSynchronize"];
  CudaLibrary::Status (*allocate_)(CudaLibrary::Pointer*, std::size_t) = cuda_["cuMemAlloc"];
  CudaLibrary::Stream stream_{}, second_{};
  CudaLibrary::Pointer ring_{};
  void* module_ = nullptr;
};

/// Threads in place of waves. They ring with a call, where the device has one.
void put_by_threads(Scene& s) {
  Ring<Producers::many> ring(s.queue.memory());
  std::vector<std::thread> waves;
  for (std::uint32_t w = 0; w < s.waves; ++w)
    waves.emplace_back([&, w] {
      Wave wave;
      Puts puts{ring};
      example::put_tiles(puts, wave, s.tiles, w);
    });
  for (auto& w : waves) w.join();
}

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
  const auto counters = must(collectives::perf::nvml_counters({pci.begin(), pci.end()}));
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
  app.add_option("--device", o.device, "soft, kfd or cuda")
      ->check(CLI::IsMember({"soft", "kfd", "cuda"}))
      ->capture_default_str();
  app.add_option("--ptx", o.ptx, "tiles.hip compiled for the GPU; needed with --device=cuda");
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
  if (cuda != !o.ptx.empty()) fail(cuda ? "--device=cuda needs --ptx=FILE" : "--ptx is for --device=cuda");
  if ((o.measure || o.beside) && !cuda) fail("--measure and --beside are for --device=cuda");
  auto device = must(open_device(*device_kind(o.device), {.soft = {.gpus = 2}}));
  if (!cuda) {
    Scene s(*device, o, o.waves * o.bytes);
    put_by_threads(s);
    s.check();
  } else {
    Kernels kernels(o.ptx);
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
