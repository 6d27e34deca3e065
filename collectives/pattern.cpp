// SPDX-License-Identifier: MIT
#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace collectives {
namespace {

constexpr std::size_t kBlock = 4096;

/// The word that holds bytes [8 * n, 8 * n + 8) of a buffer's pattern.
std::uint64_t word(std::uint64_t key, std::uint64_t n) noexcept {
  auto x = key + n * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return (x ^ x >> 29) & 0x7f7f7f7f7f7f7f7f;
}
std::uint64_t key_of(std::uint64_t seed, std::uint64_t buffer) noexcept {
  auto x = seed * 0xbf58476d1ce4e5b9 + (buffer + 1) * 0x94d049bb133111eb;
  x = (x ^ x >> 31) * 0xff51afd7ed558ccd;
  return x ^ x >> 33;
}

template <class Byte, class Fn>
void by_blocks(std::span<Byte> bytes, std::uint64_t seed, std::uint64_t buffer, std::uint64_t offset, Fn fn) noexcept {
  const auto key = key_of(seed, buffer);
  std::array<std::uint64_t, kBlock / 8 + 1> words;
  for (std::uint64_t done = 0; done < bytes.size();) {
    const auto at = offset + done, skip = at % 8, n = std::min<std::uint64_t>(kBlock, bytes.size() - done);
    for (std::uint64_t i = 0; i < (skip + n + 7) / 8; ++i) words[i] = word(key, at / 8 + i);
    fn(bytes.subspan(done, n), reinterpret_cast<const std::byte*>(words.data()) + skip, done);
    done += n;
  }
}

template <class Should>
void compare(Mismatch& m, std::span<const std::byte> bytes, std::uint64_t base, Should should) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == should(i)) continue;
    if (m.wrong++ == 0) m.first = base + i, m.should = should(i);
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> to, std::uint64_t seed, std::uint64_t buffer, std::uint64_t offset) noexcept {
  by_blocks(to, seed, buffer, offset, [](std::span<std::byte> part, const std::byte* from, std::uint64_t) {
    std::memcpy(part.data(), from, part.size());
  });
}

Mismatch mismatch(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t buffer,
                  std::uint64_t offset) noexcept {
  Mismatch m;
  by_blocks(bytes, seed, buffer, offset,
            [&](std::span<const std::byte> part, const std::byte* should, std::uint64_t base) {
              if (std::memcmp(part.data(), should, part.size()) != 0)
                compare(m, part, base, [&](std::size_t i) { return should[i]; });
            });
  return m;
}

Mismatch mismatch(std::span<const std::byte> bytes, std::byte everywhere) noexcept {
  Mismatch m;
  // If each byte equals the next, all equal the first.
  if (bytes.empty() || (bytes[0] == everywhere && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0))
    return m;
  compare(m, bytes, 0, [&](std::size_t) { return everywhere; });
  return m;
}

}  // namespace collectives
