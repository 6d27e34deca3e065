// SPDX-License-Identifier: MIT
#pragma once
// What tests write into PM4 packets by hand: the header of type 3, and the halves of an address. The node's own
// description is in lib/emulator/queues/pm4_packets.hpp; these do not use it, because they check it.
//
//   const std::uint32_t wait[] = {header(0x3c, 7), 3u | 1u << 4, low(va), high(va), 7, ~0u, 4};
//
// Pure functions. No errors.
#include <cstdint>

namespace pm4_words {

/// `dwords`: of the packet, header included.
constexpr std::uint32_t header(std::uint32_t opcode, std::uint32_t dwords) {
  return 3u << 30 | (dwords - 2) << 16 | opcode << 8;
}
constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
constexpr std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

}  // namespace pm4_words
