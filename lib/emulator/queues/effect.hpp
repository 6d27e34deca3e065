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
#include "sdma/engine/memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace sdma::emulator {

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

  Step step(AddressSpace::Reader&, GpuVa* missing) noexcept;

 private:
  Step step(const Rows&, AddressSpace::Reader&, GpuVa*) noexcept;
  static Step step(const Store&, AddressSpace::Reader&, GpuVa*) noexcept;
  static Step step(const Wait&, AddressSpace::Reader&, GpuVa*) noexcept;

  std::variant<Rows, Store, Wait> what_;
  std::uint64_t slice_ = 0, row_ = 0, byte_ = 0;  ///< where the next step begins
};

}  // namespace sdma::emulator
