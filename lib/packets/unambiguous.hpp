// SPDX-License-Identifier: MIT
#pragma once
// Proves that dwords begin at most one of a list of packets. The library asserts it of kPackets; it is apart from the
// registry because every source would pay for the proof.
//
//   static_assert(detail::unambiguous(kPackets));
//
// Thread-safety and errors: none; it runs in the compiler.
#include "sdma/packets/info.hpp"

#include <array>
#include <cstddef>

namespace sdma { inline namespace v0_3 { namespace detail {

/// True if no dwords match two packets, except that a narrower pattern may precede a wider one of the same length.
template <std::size_t N> consteval bool unambiguous(const std::array<PacketInfo, N>& all) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = i + 1; j < N; ++j) {
      bool meet = true, within = true, narrower = false;
      const auto &a = all[i].pattern, &b = all[j].pattern;
      for (std::size_t d = 0; d < Pattern::kDwords; ++d) {
        if ((a.value[d] ^ b.value[d]) & a.mask[d] & b.mask[d]) meet = false;
        if (b.mask[d] & ~a.mask[d]) within = false;
        if (a.mask[d] & ~b.mask[d]) narrower = true;
      }
      if (meet && !(within && narrower && all[i].fixed == all[j].fixed && !all[i].counted && !all[j].counted))
        return false;
    }
  return true;
}

}}}  // namespace sdma::v0_3::detail
