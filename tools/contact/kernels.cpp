// SPDX-License-Identifier: MIT
// Rings that waves write: tiles go to a peer, and each wave compares what arrived. Threads of the host stand in for
// waves on every device; with a module (share/sdma/kernels/tiles.hip, compiled for the GPU), kernels do it themselves.
#include "contact/steps.hpp"

#include "device/gpu_kernels.hpp"
#include "host.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <optional>

namespace sdma::tool::contact {
namespace {

using detail::GpuKernels;
using detail::GpuRuntime;
using example::TileScene;
using Waves = Ring<Producers::many>;

/// A ring of the least size, so that it wraps and is full.
constexpr std::uint32_t kTileBytes = 4096, kRingBytes = 1024;

std::optional<GpuRuntime> runtime_of(DeviceKind k) {
  if (k == DeviceKind::cuda) return GpuRuntime::cuda;
  if (k == DeviceKind::rocr) return GpuRuntime::hip;
  return {};
}

Result<TileScene, Diagnostic> scene(Device& d, std::uint32_t waves, std::uint32_t rounds, bool by_kernels) {
  const auto memory = [&](std::uint32_t gpu) -> MemoryRequest {
    if (!by_kernels) return {.bytes = waves * kTileBytes};
    return {.where = GpuId{gpu}, .bytes = waves * kTileBytes, .host_access = false};
  };
  return TileScene::make(d, {.waves = waves,
                             .rounds = rounds,
                             .bytes = kTileBytes,
                             .ring_bytes = kRingBytes,
                             .for_kernels = by_kernels,
                             .from = memory(0),
                             .to = memory(d.topology().gpus.size() > 1 ? 1 : 0)});
}

GpuKernels::Done by_kernels(const TileScene& s, const GpuKernels& gpu, GpuRuntime runtime, std::uint32_t waves) {
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
  if (!gpu) example::put_by_threads(here->queue, here->tiles, waves);
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
