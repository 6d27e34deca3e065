// SPDX-License-Identifier: MIT
#pragma once
// What a copy between host memory and a GPU costs the engine and the host, as measured, and what follows for rows.
//
//   rows of a box   as copies of batches     the host prepares each row, the engine takes them at the rate of the link
//                   as one strided copy      one call for the host; the engine needs kStridedNs more than for the rows
//
// Which is better depends on who is late. If the engine has work for longer than the host takes to issue a batch, rows
// become copies. If it would run out of work, a box becomes a strided copy, and meanwhile the host gets ahead again. So
// the mixture follows the host, which needs from 0.5 to 1 us for a copy of a batch on different machines with the same
// GPU.
//
// Source: bench/serving/driver.cu on two H200 (driver 580.159); docs/silicon.md has the rows. Times in ns. Internal; no
// errors.
#include <array>
#include <cstddef>
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

struct CopyCost {
  std::uint64_t bytes{}, ns{};
};
/// The engine's time for a copy of a batch, from pinned memory, with many others before it.
inline constexpr std::array<CopyCost, 8> kCopyCosts{
    {{256, 70}, {1024, 75}, {4096, 160}, {8192, 230}, {16384, 440}, {32768, 645}, {65536, 1230}, {131072, 2415}}};
inline constexpr std::uint64_t kStridedNs = 2700;  ///< of the engine, for any strided copy
/// From so many rows on, a strided copy costs the host less than copies of a batch do: 1.35 us against 0.5 us a row, or
/// 2.6 us against 0.95 us.
inline constexpr std::uint64_t kFewestStridedRows = 4;
/// The host's time for a batch of 64 on the slower machine. With less work than this, the engine may run out of it.
inline constexpr std::uint64_t kBusyNs = 64'000;

/// The engine's time for `bytes` bytes: between the measured lengths on a line, beyond them at the rate of the longest.
constexpr std::uint64_t copy_ns(std::uint64_t bytes) noexcept {
  if (bytes <= kCopyCosts.front().bytes) return kCopyCosts.front().ns;
  for (std::size_t i = 1; i < kCopyCosts.size(); ++i) {
    const auto &a = kCopyCosts[i - 1], &b = kCopyCosts[i];
    if (bytes <= b.bytes) return a.ns + (b.ns - a.ns) * (bytes - a.bytes) / (b.bytes - a.bytes);
  }
  return bytes / kCopyCosts.back().bytes * kCopyCosts.back().ns +
         bytes % kCopyCosts.back().bytes * kCopyCosts.back().ns / kCopyCosts.back().bytes;
}

}}}  // namespace sdma::v0_3::detail::cuda
