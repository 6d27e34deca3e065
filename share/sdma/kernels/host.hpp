// SPDX-License-Identifier: MIT
#pragma once
// The host's part of a tile loop: memory, a ring that waves write, and threads in place of waves.
//
//   auto s = TileScene::make(device, {.waves = 8, .rounds = 100, .bytes = 4096, .ring_bytes = 1024,
//                                     .from = {.bytes = 32768}, .to = {.bytes = 32768}});
//   put_by_threads(s->queue, s->tiles, 8);          // or the kernels of tiles.hip, with s->queue.memory() and s->tiles
//   if (*s->tiles.wrong != 0 || *s->tiles.failed != 0) ...
//
// Kernels see memory where engines do; threads see it where the host does, if the host has access. One thread.
// Errors: those of the device.
#include "sdma/device/device.hpp"
#include "tiles.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace example {

struct TileRequest {
  std::uint32_t waves{}, rounds{};
  std::uint32_t bytes{};             ///< of a tile
  std::uint64_t ring_bytes{};        ///< a power of two from 1024 on
  bool for_kernels = true;           ///< QueueRequest::for_kernels
  sdma::MemoryRequest from{}, to{};  ///< for the tiles of all waves
};

struct TileScene {
  sdma::Memory from, to, words;
  sdma::Queue queue;
  Tiles tiles;

  static sdma::Result<TileScene, sdma::Diagnostic> make(sdma::Device& d, const TileRequest& r) {
    auto from = d.allocate(r.from), to = d.allocate(r.to);
    const auto before_counters = r.waves * 128ull;
    auto words = d.allocate({.bytes = before_counters + 64, .purpose = sdma::Purpose::words});
    auto queue = d.create_queue({.gpu = sdma::GpuId{0}, .ring_bytes = r.ring_bytes, .for_kernels = r.for_kernels});
    for (const auto* m : {&from, &to, &words})
      if (!*m) return m->error();
    if (!queue) return queue.error();
    auto* const host = words->host().data();
    std::fill_n(host, words->host().size(), std::byte{});
    auto* const counters = reinterpret_cast<std::uint32_t*>(host + before_counters);
    const auto seen = [](const sdma::Memory& m) {
      return m.host().empty() ? reinterpret_cast<std::uint32_t*>(m.va().value)
                              : reinterpret_cast<std::uint32_t*>(m.host().data());
    };
    const Tiles t{.from = seen(*from),
                  .to = seen(*to),
                  .src = from->va(),
                  .dst = to->va(),
                  .bytes = r.bytes,
                  .rounds = r.rounds,
                  .loads = 50'000'000,
                  .words = reinterpret_cast<std::uint64_t*>(host),
                  .words_va = words->va(),
                  .wrong = counters,
                  .failed = counters + 1};
    return TileScene{std::move(*from), std::move(*to), std::move(*words), std::move(*queue), t};
  }
};

/// Threads in place of waves. They ring with a call, where the device has one.
inline void put_by_threads(const sdma::Queue& queue, const Tiles& tiles, std::uint32_t waves) {
  sdma::Ring<sdma::Producers::many> ring(queue.memory());
  std::vector<std::thread> all;
  for (std::uint32_t w = 0; w < waves; ++w)
    all.emplace_back([&, w] {
      sdma::Wave wave;
      sdma::Puts puts{ring};
      put_tiles(puts, wave, tiles, w);
    });
  for (auto& t : all) t.join();
}

}  // namespace example
