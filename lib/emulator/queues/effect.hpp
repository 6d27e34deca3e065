// SPDX-License-Identifier: MIT
#pragma once
// What a known kernel does to memory, executed in bounded steps.
//
//   Effect e(Rows{.src = a, .dst = b, .row_bytes = 100, .rows = 4, .src_row = 256, .dst_row = 128});
//   while ((s = e.step(reader, &missing)) == Effect::Step::more) {}
//
//   Rows    copies rows of bytes, in slices of rows; with a pattern, fills them instead
//   Store   stores a word
//   Wait    complete when a word in memory has the value: call `step` again
//
//   slices of rows      dst ->  |row|....|row|....|     |row|....|row|....|
//                               |<dst_row>|             |
//                               |<---- dst_slice ------>|
//
// Addresses are the GPU's. A step moves at most kStepBytes and touches at most kStepRows rows. Use it inside a Section
// of the reader; one thread. Nothing allocates or throws.
#include "../../engine/address_space.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <variant>

namespace sdma::emulator {

/// Fills `to` with the pattern, beginning `phase` bytes into it.
inline void fill(std::span<std::byte> to, std::span<const std::byte> pattern, std::uint64_t phase) noexcept {
  if (std::all_of(pattern.begin(), pattern.end(), [&](std::byte b) { return b == pattern[0]; })) {
    std::memset(to.data(), std::to_integer<int>(pattern[0]), to.size());
    return;
  }
  // One pattern byte by byte, then doublings of what is there.
  const auto first = std::min(to.size(), pattern.size());
  for (std::size_t i = 0; i < first; ++i) to[i] = pattern[(phase + i) % pattern.size()];
  for (auto n = first; n < to.size();) {
    const auto more = std::min(n, to.size() - n);
    std::memcpy(to.data() + n, to.data(), more);
    n += more;
  }
}

template <class T> T* word(std::byte* at) noexcept { return reinterpret_cast<T*>(at); }

struct Rows {
  GpuVa src{}, dst{};
  std::uint64_t row_bytes{}, rows = 1, slices = 1;
  std::uint64_t src_row{}, src_slice{}, dst_row{}, dst_slice{};  ///< distances in bytes, modulo 2^64
  std::array<std::byte, 256> pattern{};
  std::uint32_t pattern_bytes{};  ///< 0: a copy; otherwise each row begins with the pattern's first byte
};
struct Store {
  GpuVa at{};
  std::uint64_t value{};
  bool wide{};  ///< 64 bits
};
/// The comparisons of hipStreamWaitValue: the word, under the mask, is at least, or equal to, the value; shares a bit
/// with it; or has a bit that is neither in the word nor in the value.
struct Wait {
  enum class Until : std::uint8_t { at_least, equal, and_not_zero, nor_not_zero };
  GpuVa at{};
  std::uint64_t value{}, mask{};
  Until until{};
  bool wide{};
};

class Effect {
 public:
  enum class Step : std::uint8_t {
    complete,
    more,      ///< a part is complete: call it again
    waits,     ///< for a value in memory: call it again later
    unmapped,  ///< at the address `*missing`
  };
  static constexpr std::uint64_t kStepBytes = 4 << 20, kStepRows = 8192;

  explicit Effect(const Rows& r) noexcept : what_(r) {}
  explicit Effect(const Store& s) noexcept : what_(s) {}
  explicit Effect(const Wait& w) noexcept : what_(w) {}

  Step step(AddressSpace::Reader& memory, GpuVa* missing) noexcept {
    return std::visit([&](const auto& what) { return step(what, memory, missing); }, what_);
  }

 private:
  Step step(const Rows& r, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
    if (r.row_bytes == 0 || r.rows == 0) return Step::complete;
    auto left = kStepBytes, rows = kStepRows;
    for (; slice_ < r.slices; ++slice_, row_ = 0)
      for (; row_ < r.rows; ++row_, byte_ = 0, --rows) {
        if (rows == 0) return Step::more;
        while (byte_ < r.row_bytes) {
          if (left == 0) return Step::more;
          const auto dst = r.dst + slice_ * r.dst_slice + row_ * r.dst_row + byte_;
          const auto to = memory.run(dst, std::min(left, r.row_bytes - byte_), Access::write);
          if (to.empty()) return *missing = dst, Step::unmapped;
          auto n = to.size();
          if (r.pattern_bytes != 0) {
            fill(to, {r.pattern.data(), r.pattern_bytes}, byte_ % r.pattern_bytes);
          } else {
            const auto src = r.src + slice_ * r.src_slice + row_ * r.src_row + byte_;
            const auto from = memory.run(src, n, Access::read);
            if (from.empty()) return *missing = src, Step::unmapped;
            n = from.size();
            std::memmove(to.data(), from.data(), n);
          }
          byte_ += n;
          left -= n;
        }
      }
    return Step::complete;
  }
  static Step step(const Store& s, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
    const auto bytes = s.wide ? 8u : 4u;
    auto* to = s.at.value % bytes == 0 ? memory.at(s.at, bytes, Access::write) : nullptr;
    if (!to) return *missing = s.at, Step::unmapped;
    if (s.wide) __atomic_store_n(word<std::uint64_t>(to), s.value, __ATOMIC_RELEASE);
    else __atomic_store_n(word<std::uint32_t>(to), static_cast<std::uint32_t>(s.value), __ATOMIC_RELEASE);
    return Step::complete;
  }
  static Step step(const Wait& w, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
    const auto bytes = w.wide ? 8u : 4u;
    auto* from = w.at.value % bytes == 0 ? memory.at(w.at, bytes, Access::read) : nullptr;
    if (!from) return *missing = w.at, Step::unmapped;
    const auto all = w.wide ? ~std::uint64_t{0} : std::uint64_t{~std::uint32_t{0}};
    const auto v = w.wide ? __atomic_load_n(word<std::uint64_t>(from), __ATOMIC_ACQUIRE)
                          : __atomic_load_n(word<std::uint32_t>(from), __ATOMIC_ACQUIRE);
    const auto value = w.value & all, mask = w.mask & all;
    bool met = false;
    switch (w.until) {
      case Wait::Until::at_least: met = (v & mask) >= value; break;
      case Wait::Until::equal: met = (v & mask) == value; break;
      case Wait::Until::and_not_zero: met = (v & mask & value) != 0; break;
      case Wait::Until::nor_not_zero: met = (~(v | value) & mask) != 0; break;
    }
    return met ? Step::complete : Step::waits;
  }

  std::variant<Rows, Store, Wait> what_;
  std::uint64_t slice_ = 0, row_ = 0, byte_ = 0;  ///< where the next step begins
};

}  // namespace sdma::emulator
