// SPDX-License-Identifier: MIT
// The software engine: copies compared with memcpy of the same bytes, and small packets per second on one core.
#include "engine/pipeline.hpp"
#include "sdma/stream/writer.hpp"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

using namespace sdma;

namespace {

constexpr GpuVa kBase{0x7f0000000000};

/// Memory at an address that differs from the host's, and a ring.
struct Bed {
  Bed(std::uint64_t bytes, Ordering ordering) : memory(bytes, std::byte{1}), ring(1 << 16), reader(space, GpuId{0}) {
    if (space.map({.va = kBase, .bytes = bytes, .host = memory.data()}) != Errc::ok) std::abort();
    pipeline = std::make_unique<Pipeline>(
        PipelineConfig{.ring = ring, .rptr = &rptr, .reader = &reader, .ordering = ordering, .seed = 1, .linger = 0});
  }
  void run() {
    pipeline->doorbell(wptr);
    for (;;) {
      const auto p = pipeline->step(256);
      if (p == Progress::idle) return;
      if (p != Progress::progressed) std::abort();
    }
  }

  AddressSpace space;
  std::vector<std::byte> memory;
  std::vector<std::uint32_t> ring;
  std::uint64_t rptr = 0, wptr = 0;
  AddressSpace::Reader reader;
  std::unique_ptr<Pipeline> pipeline;
};

void memcpy_of(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> memory(2 * bytes, std::byte{1});
  for (auto _ : state) {
    std::memcpy(memory.data() + bytes, memory.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void copy_of(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  Bed bed(2 * bytes, Ordering::strict);
  for (auto _ : state) {
    if (bed.wptr % (4 * bed.ring.size()) > 4 * (bed.ring.size() - 16)) {
      Writer w{std::span(bed.ring).subspan(bed.wptr / 4 % bed.ring.size())};
      while (w.room() != 0) (void)w.put(Nop{});
      bed.wptr += 4 * w.written().size();
    }
    Writer w{std::span(bed.ring).subspan(bed.wptr / 4 % bed.ring.size())};
    (void)w.copy({.src = kBase, .dst = kBase + bytes, .bytes = bytes});
    bed.wptr += 4 * w.written().size();
    bed.run();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// A ring of 64-byte copies with a fence after every `copies`, published at once and executed.
void small_packets(benchmark::State& state, Ordering ordering) {
  const auto copies = static_cast<std::uint64_t>(state.range(0));
  Bed bed(1 << 16, ordering);
  Writer w{bed.ring};
  for (std::uint64_t i = 0; w.room() > 16; ++i) {
    if (w.room() - bed.ring.size() / 2 < 16) (void)w.put(Nop{});  // no packet across the middle
    else if (i % (copies + 1) == copies) (void)w.put(Fence{.addr = kBase, .value = 1});
    else (void)w.put(CopyLinear{.src = kBase + 64 * (1 + i % 256), .dst = kBase + 64 * (300 + i % 256), .bytes = 64});
  }
  while (w.room() != 0) (void)w.put(Nop{});
  for (auto _ : state) {
    for (int half = 0; half < 2; ++half) {  // a full ring can look like an empty one
      bed.wptr += 2 * bed.ring.size();
      bed.run();
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(bed.pipeline->counters().packets));
}

}  // namespace

BENCHMARK(memcpy_of)->RangeMultiplier(8)->Range(1 << 20, 1 << 26);
BENCHMARK(copy_of)->RangeMultiplier(8)->Range(1 << 20, 1 << 26);
BENCHMARK_CAPTURE(small_packets, strict, Ordering::strict)->Arg(1)->Arg(7);
BENCHMARK_CAPTURE(small_packets, rocr, Ordering::rocr)->Arg(1)->Arg(7);
BENCHMARK_CAPTURE(small_packets, adversarial, Ordering::adversarial)->Arg(1)->Arg(7);

BENCHMARK_MAIN();
