// SPDX-License-Identifier: MIT
#pragma once
// The memory around a pipeline that is fuzzed: what it may write, what it may only read, and what is not its own.
//
//   Space s;                            // at 0 and kBytes the same memory, then constants, a gap, another GPU's
//   ... a pipeline executes anything with s.reader ...
//   s.require_intact();                 // not a byte is written that is not mapped for writing
#include "engine/address_space.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sdma::fuzz {

inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

struct Space {
  static constexpr std::uint64_t kBytes = 1 << 14, kGuard = 64;
  static constexpr std::byte kPoison{0xcd};

  /// Guard bytes, memory, guard bytes.
  struct Memory {
    Memory() : bytes(kBytes + 2 * kGuard, kPoison) {}
    std::byte* begin() { return bytes.data() + kGuard; }
    bool guards_hold() const {
      const auto poisoned = [](std::byte b) { return b == kPoison; };
      return std::all_of(bytes.begin(), bytes.begin() + kGuard, poisoned) &&
             std::all_of(bytes.end() - kGuard, bytes.end(), poisoned);
    }
    std::vector<std::byte> bytes;
  };

  // Low addresses, so that a high dword of 0 hits; the same memory again; what may only be read; another GPU's.
  Space() {
    map(0, low, Access::read_write, ~std::uint64_t{0});
    map(kBytes, low, Access::read_write, ~std::uint64_t{0});
    map(2 * kBytes, constant, Access::read, ~std::uint64_t{0});
    map(4 * kBytes, foreign, Access::read_write, 2);
  }
  void require_intact() const {
    const auto untouched = [](const Memory& m) {
      return std::all_of(m.bytes.begin(), m.bytes.end(), [](std::byte b) { return b == kPoison; });
    };
    require(low.guards_hold() && untouched(constant) && untouched(foreign));
  }

  Memory low, constant, foreign;
  AddressSpace space;
  AddressSpace::Reader reader{space, GpuId{0}};

 private:
  void map(std::uint64_t va, Memory& m, Access a, std::uint64_t gpus) {
    require(space.map({.va = GpuVa{va}, .bytes = kBytes, .host = m.begin(), .gpus = gpus, .access = a}) == Errc::ok);
  }
};

}  // namespace sdma::fuzz
