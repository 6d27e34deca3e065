#pragma once
// Memory that a packet touches, as data: a run of bytes, or rows and slices of such runs.
//
//   Region{.va = src, .bytes = 4096, .access = Access::read}
//   Region{.va = box, .bytes = 64, .access = Access::write, .rows = 4, .pitch = 256}     four runs of 64 bytes
//
// These are plain values; any thread may use them. No errors.
#include "sdma/core/units.hpp"

#include <cstdint>

namespace sdma::inline v0 {

/// How memory is accessed, and which accesses a mapping allows.
enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };
constexpr bool allows(Access mapping, Access wanted) noexcept {
  const auto have = static_cast<unsigned>(mapping), want = static_cast<unsigned>(wanted);
  return (have & want) == want;
}

/// Bytes that a packet touches: `rows` runs of `bytes` bytes, which begin `pitch` bytes apart. The rows are repeated
/// `slices` times, `slice_pitch` bytes apart.
struct Region {
  GpuVa va{};
  std::uint64_t bytes{};
  Access access = Access::read;
  std::uint32_t rows = 1;
  std::uint64_t pitch{};
  std::uint32_t slices = 1;
  std::uint64_t slice_pitch{};
};

}  // namespace sdma::inline v0
