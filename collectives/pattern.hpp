// SPDX-License-Identifier: MIT
#pragma once
// Bytes that identify their origin: each is a function of (seed, buffer, offset), and none is kPoison. Runs
// and tools fill buffers with them and check them.
//
//   fill_pattern(bytes, seed, buffer, offset);           bytes = pattern[offset, ...)
//   auto at = mismatch(bytes, seed, buffer, offset);     counts the bytes that differ, and the first of them
//
// Each byte uses seven bits, so none equals poison (0xdb). Any thread may call these functions. No errors.
#include <cstddef>
#include <cstdint>
#include <span>

namespace collectives {

struct Mismatch {
  std::uint64_t wrong{};
  std::uint64_t first{};  ///< offset in the span
  std::byte should{};
};

void fill_pattern(std::span<std::byte>, std::uint64_t seed, std::uint64_t buffer, std::uint64_t offset) noexcept;
Mismatch mismatch(std::span<const std::byte>, std::uint64_t seed, std::uint64_t buffer, std::uint64_t offset) noexcept;
/// Compares every byte with the same one.
Mismatch mismatch(std::span<const std::byte>, std::byte everywhere) noexcept;

}  // namespace collectives
