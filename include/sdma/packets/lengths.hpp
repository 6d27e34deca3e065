// SPDX-License-Identifier: MIT
#pragma once
// The length of any packet, for code that only steps over packets. The registry (packets/registry.hpp) knows everything
// about every packet, and takes much longer to compile.
//
//   std::size_t n = packet_length(dwords);      // 7 at a CopyLinear; 0: no known packet begins with these dwords
//
// The search compares with one packet of the list after the other, so `identify` is faster. Constants: any thread may
// read them. No errors.
#include "sdma/packets/length_table.hpp"

namespace sdma { inline namespace v0_3 {

namespace detail {
/// No packet needs more dwords than these to be identified and measured.
inline constexpr std::size_t kMaxHead = [] {
  std::size_t most = 0;
  for (const auto& p : detail::kLengths) most = p.head > most ? p.head : most;
  return most;
}();
}  // namespace detail

/// The length in dwords of the packet that begins with these dwords; 0 if no known packet does. If `d` ends before the
/// packet's length is known, the result is larger than d.size().
constexpr std::size_t packet_length(std::span<const std::uint32_t> d) noexcept {
  for (const auto& p : detail::kLengths)
    if (p.pattern.matches(d)) return p.head <= d.size() ? p.length(d.data()) : p.head;
  return 0;
}

}}  // namespace sdma::v0_3
