// SPDX-License-Identifier: MIT
#pragma once
// Memory that a ring takes: dwords, and rptr, wptr and doorbell each in a line of its own.
#include "sdma/queue/ring.hpp"

#include <vector>

namespace test {

inline constexpr std::uint32_t kPoison = 0xffffffff;

struct Memory {
  explicit Memory(std::size_t n, std::uint64_t start = 0)
      : rptr(start), wptr(start), doorbell(start), room(n + 64, kPoison) {
    const auto at = reinterpret_cast<std::uintptr_t>(room.data());
    dwords = std::span(room).subspan(((at + 255) / 256 * 256 - at) / 4, n);
  }
  sdma::RingMemory ring() {
    return {
        .dwords = dwords, .rptr = &rptr, .wptr = &wptr, .doorbell = &doorbell, .caching = sdma::Caching::write_back};
  }

  alignas(64) std::uint64_t rptr;
  alignas(64) std::uint64_t wptr;
  alignas(64) std::uint64_t doorbell;
  std::vector<std::uint32_t> room;
  std::span<std::uint32_t> dwords;
};

}  // namespace test
