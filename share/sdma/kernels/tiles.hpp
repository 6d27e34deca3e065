// SPDX-License-Identifier: MIT
#pragma once
// A tile loop that puts as it goes: a wave computes a tile, puts it to a peer with a signal, and goes on when the
// signal says that the tile is there. The same function runs in a kernel and, as one lane, in a thread of the host.
//
//   wave    compute tile | put_signal |  wait for the flag  | check | compute the next tile ...
//   engine                            copy | fence
//
// Source and destination are whole words. `wrong` counts words that are not what the wave computed; `failed` holds the
// first error of a wave.
#include "sdma/sync/device.hpp"

namespace example {

/// What all waves share. Wave w has the w-th tile and the w-th line of words.
struct Tiles {
  std::uint32_t *from{}, *to{};       ///< the tiles as waves see them
  sdma::GpuVa src{}, dst{};           ///< and as engines see them
  std::uint32_t bytes{};              ///< of a tile
  std::uint32_t rounds{};             ///< how often each wave puts its tile
  std::uint32_t loads{};              ///< the most loads of one wait
  bool check = true;                  ///< false: only put, to measure the time
  std::uint64_t* words{};             ///< two for each wave, 64 bytes apart
  sdma::GpuVa words_va{};             ///< and as engines see them
  std::uint32_t *wrong{}, *failed{};  ///< counters
};

SDMA_DEVICE_BEGIN
/// The n-th word of those that waves wait for.
inline sdma::Signal word_of(const Tiles& t, std::uint32_t n) noexcept {
  return {.word = t.words + n * 8, .va = t.words_va + n * 64};
}
/// What wave `wave` writes to word `i` in round `round`.
inline std::uint32_t value_of(std::uint32_t wave, std::uint32_t round, std::uint32_t i) noexcept {
  return (wave * 7919 + round) * 2654435761u + i;
}

template <class Puts, class W> void put_tiles(Puts& puts, W& wave, const Tiles& t, std::uint32_t me) noexcept {
  using sdma::Errc;
  const auto words = t.bytes / 4;
  const auto flag = word_of(t, 2 * me), done = word_of(t, 2 * me + 1);
  const std::uint64_t at = std::uint64_t{me} * t.bytes;
  auto* const from = t.from + std::size_t{me} * words;
  auto* const to = t.to + std::size_t{me} * words;
  auto e = Errc::ok;
  for (std::uint32_t round = 1; e == Errc::ok && round <= t.rounds; ++round) {
    for (auto i = wave.lane(); t.check && i < words; i += wave.lanes()) from[i] = value_of(me, round, i);
    e = Errc::no_space;
    for (auto tries = t.loads; e == Errc::no_space && tries != 0; --tries)
      e = puts.put_signal({.src = t.src + at, .dst = t.dst + at, .bytes = t.bytes}, flag, round);
    if (e == Errc::ok) e = puts.reached(flag, round, t.loads);
    std::uint32_t wrong = 0;
    for (auto i = wave.lane(); t.check && e == Errc::ok && i < words; i += wave.lanes())
      wrong += sdma::atomic_ref<std::uint32_t>(to[i]).load(std::memory_order_relaxed) != value_of(me, round, i);
    if (wrong != 0) sdma::atomic_ref<std::uint32_t>(*t.wrong).fetch_add(wrong, std::memory_order_relaxed);
    wave.barrier();  // every lane has read the tile before any lane computes the next one
  }
  if (e == Errc::ok) {
    e = Errc::no_space;
    for (auto tries = t.loads; e == Errc::no_space && tries != 0; --tries) e = puts.quiet(done, 1, t.loads);
  }
  if (e != Errc::ok && wave.lane() == 0)
    sdma::atomic_ref<std::uint32_t>(*t.failed).store(static_cast<std::uint32_t>(e), std::memory_order_relaxed);
}
SDMA_DEVICE_END

}  // namespace example
