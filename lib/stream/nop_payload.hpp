// SPDX-License-Identifier: MIT
#pragma once
// What a NOP skips. A NOP whose length is wrong swallows the packets
// after it, and nothing executes them. Internal to the stream rules.
//
//   const auto s = skipped_by(view.dwords.subspan(1));
//   s.nonzero          how many of the dwords are not 0, which is what all public code leaves there
//   s.completion       the first packet among them that would complete something; null: there is none
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>

namespace sdma::inline v0::detail {

struct SkippedDwords {
  std::size_t nonzero{};
  const PacketInfo* completion{};
  std::size_t at{};  ///< index of its first dword
};

/// Is this a fence, an atomic or a trap that an engine would accept, and not a number that looks like one?
inline bool is_completion(const PacketView& v) noexcept {
  if (!v.is<Fence>() && !v.is<Atomic>() && !v.is<Trap>()) return false;
  for (std::size_t i = 0; i < v.info->head; ++i)
    if ((v.dwords[i] & v.info->reserved(i)) != 0) return false;
  bool plausible = false;
  visit(*v.info, v.dwords, [&](const auto& p) { plausible = fits(p) && (v.is<Trap>() || word(p).va.value != 0); });
  return plausible;
}

inline SkippedDwords skipped_by(std::span<const std::uint32_t> payload) noexcept {
  SkippedDwords s;
  s.nonzero = payload.size() - static_cast<std::size_t>(std::count(payload.begin(), payload.end(), 0u));
  if (s.nonzero == 0) return s;
  for (Reader r{payload}; r;) {
    const auto at = r.position();
    if (const auto v = r.next(); is_completion(v)) return {s.nonzero, v.info, at};
  }
  return s;
}

}  // namespace sdma::inline v0::detail
