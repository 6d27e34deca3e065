// SPDX-License-Identifier: MIT
// Rings that waves write: tiles go to a peer, and each wave compares what arrived. Threads of the host stand in for
// waves on every device; with a module (share/sdma/kernels/tiles.hip, compiled for the GPU), kernels do it themselves.
#include "contact/steps.hpp"

#include "device/gpu_kernels.hpp"
#include "sdma/core/file.hpp"
#include "tiles.hpp"

#include <fmt/format.h>

#include <optional>
#include <thread>

namespace sdma::tool::contact {
namespace {

using detail::GpuKernels;
using detail::GpuRuntime;
using example::Tiles;
using Waves = Ring<Producers::many>;

/// A ring of the least size, so that it wraps and is full.
constexpr std::uint32_t kTileBytes = 4096, kRingBytes = 1024;

std::optional<GpuRuntime> runtime_of(DeviceKind k) {
  if (k == DeviceKind::cuda) return GpuRuntime::cuda;
  if (k == DeviceKind::rocr) return GpuRuntime::hip;
  return {};
}

/// The tiles, words and ring of so many waves.
struct Scene {
  Memory from, to, words;
  Queue queue;
  Tiles tiles;
};
Result<Scene, Diagnostic> scene(Device& d, std::uint32_t waves, std::uint32_t rounds, bool by_kernels) {
  const auto memory = [&](std::uint32_t gpu) -> MemoryRequest {
    if (!by_kernels) return {.bytes = waves * kTileBytes};
    return {.where = GpuId{gpu}, .bytes = waves * kTileBytes, .host_access = false};
  };
  const auto words_bytes = waves * 128ull + 64;
  auto from = d.allocate(memory(0)), to = d.allocate(memory(d.topology().gpus.size() > 1 ? 1 : 0));
  auto words = d.allocate({.bytes = words_bytes, .purpose = Purpose::words});
  auto queue = d.create_queue({.gpu = GpuId{0}, .ring_bytes = kRingBytes, .for_kernels = by_kernels});
  for (const auto* m : {&from, &to, &words})
    if (!*m) return m->error();
  if (!queue) return queue.error();
  std::fill_n(words->host().data(), words->host().size(), std::byte{});
  auto* const counters = reinterpret_cast<std::uint32_t*>(words->host().data() + waves * 128ull);
  // Kernels see memory where engines do; threads see it where the host does.
  const auto seen = [&](const Memory& m) {
    return by_kernels ? reinterpret_cast<std::uint32_t*>(m.va().value)
                      : reinterpret_cast<std::uint32_t*>(m.host().data());
  };
  const Tiles t{.from = seen(*from),
                .to = seen(*to),
                .src = from->va(),
                .dst = to->va(),
                .bytes = kTileBytes,
                .rounds = rounds,
                .loads = 50'000'000,
                .words = reinterpret_cast<std::uint64_t*>(words->host().data()),
                .words_va = words->va(),
                .wrong = counters,
                .failed = counters + 1};
  return Scene{std::move(*from), std::move(*to), std::move(*words), std::move(*queue), t};
}

void by_threads(const Scene& s, std::uint32_t waves) {
  Waves ring(s.queue.memory());
  std::vector<std::thread> all;
  for (std::uint32_t w = 0; w < waves; ++w)
    all.emplace_back([&, w] {
      Wave wave;
      Puts puts{ring};
      example::put_tiles(puts, wave, s.tiles, w);
    });
  for (auto& t : all) t.join();
}

GpuKernels::Done by_kernels(const Scene& s, const GpuKernels& gpu, GpuRuntime runtime, std::uint32_t waves) {
  const unsigned lanes = runtime == GpuRuntime::cuda ? 32 : 64;
  const auto ring = gpu.allocate(sizeof(Waves));
  if (!ring) return ring.error();
  std::uint32_t* const no_words = nullptr;
  auto done = gpu.start(gpu.stream(), "make_ring", 1, lanes, *ring, s.queue.memory(), no_words, 0u);
  if (done) done = gpu.start(gpu.stream(), "put_all_tiles", waves, lanes, *ring, s.tiles);
  return done ? gpu.wait(gpu.stream()) : done;
}

}  // namespace

Json put_by_waves(Device& d, const Settings& s, const std::string& module) {
  const std::uint32_t waves = s.gentle ? 4 : 32, rounds = s.gentle ? 20 : 1000;
  std::optional<GpuKernels> gpu;
  if (!module.empty()) {
    auto loaded = GpuKernels::load(*runtime_of(s.device), module);
    if (!loaded) return with_state("left out", to_string(loaded.error()));
    gpu = std::move(*loaded);
  }
  auto here = scene(d, waves, rounds, gpu.has_value());
  if (!here) return with_state("left out", to_string(here.error()));
  if (!gpu) by_threads(*here, waves);
  else if (const auto done = by_kernels(*here, *gpu, *runtime_of(s.device), waves); !done)
    return with_state("failed", to_string(done.error()));
  const auto& t = here->tiles;
  if (const auto f = d.fault(here->queue)) return with_state("failed", describe(*f));
  if (*t.failed != 0)
    return with_state("failed", fmt::format("a wave gave up: {}", message(static_cast<Errc>(*t.failed))));
  if (*t.wrong != 0) return with_state("failed", fmt::format("{} words of tiles are wrong", *t.wrong));
  return with_state("passed");
}

std::string no_kernels(const Settings& s) {
  if (!runtime_of(s.device)) return "kernels need --device=rocr or --device=cuda";
  if (s.module.empty()) return "no --module=FILE: docs/device_side.md says how to compile it";
  return {};
}

}  // namespace sdma::tool::contact
