// SPDX-License-Identifier: MIT
#pragma once
// Memory that a packet touches, as data: a run of bytes, or rows and slices of such runs.
//
//   const Region run{.va = src, .bytes = 4096, .access = Access::read};
//   const Region box{.va = dst, .bytes = 64, .access = Access::write, .rows = 4, .pitch = 256};  // 4 runs of 64 bytes
//   hull(box)   ==   832                                            // from the first of these bytes to the last
//
// These are plain values; any thread may use them. No errors.
#include "sdma/core/units.hpp"

#include <cstdint>
#include <utility>

namespace sdma { inline namespace v0_3 {

/// How memory is accessed, and which accesses a mapping allows.
/// `read`: loads; `write`: stores; `read_write`: both. A value is a set of bits.
enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };
/// Does a mapping permit this access?
constexpr bool allows(Access mapping, Access wanted) noexcept {
  const auto have = static_cast<unsigned>(mapping), want = static_cast<unsigned>(wanted);
  return (have & want) == want;
}

/// Bytes that a packet touches: `rows` runs of `bytes` bytes, which begin `pitch` bytes apart. The rows are repeated
/// `slices` times, `slice_pitch` bytes apart.
struct Region {
  GpuVa va{};  ///< of the first byte
  std::uint64_t bytes{};
  Access access = Access::read;  ///< what the packet does with it
  std::uint32_t rows = 1;
  std::uint64_t pitch{};
  std::uint32_t slices = 1;
  std::uint64_t slice_pitch{};
};

/// How many bytes lie from the first byte of a region to its last, gaps included: at most 2^64 - 1; 0 if it has none.
constexpr std::uint64_t hull(const Region& r) noexcept {
  if (r.bytes == 0 || r.rows == 0 || r.slices == 0) return 0;
  std::uint64_t room = ~std::uint64_t{} - r.bytes;
  for (const auto& [steps, pitch] : {std::pair{r.rows - 1, r.pitch}, std::pair{r.slices - 1, r.slice_pitch}}) {
    if (pitch != 0 && steps > room / pitch) return ~std::uint64_t{};
    room -= steps * pitch;
  }
  return ~std::uint64_t{} - room;
}
/// One past the last byte of a region; at most 2^64 - 1.
constexpr GpuVa end_of(const Region& r) noexcept {
  const auto room = ~std::uint64_t{} - r.va.value, bytes = hull(r);
  return r.va + (bytes < room ? bytes : room);
}

}}  // namespace sdma::v0_3
