// SPDX-License-Identifier: MIT
#pragma once
// What a counter may hold while its posts add to it, and which of these values satisfy a wait. Internal.
//
//   const auto most = base + extreme(chain, from, known, possible, +1);
//   if (const auto values = satisfying(wait, word, least, most)) ...     values->from .. values->to, all of them
#include "model.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace check_detail {

struct Span {
  Wide from, to;
};

/// The values from `low` to `high` that satisfy a wait, perhaps none; nullopt if they do not follow each other.
/// A counter of 32 or 64 bits wraps: values that differ by a multiple of 2^32 or 2^64 satisfy the same waits.
inline std::optional<Span> satisfying(const Step& s, const Word& w, Wide low, Wide high) {
  const unsigned shift = s.sync->high ? 32 : 0;
  const unsigned bits = shift == 0 && (s.sync->bytes == 4 || w.bytes == 4) ? 32 : 64;
  // Adding to the low half does not carry into the high half.
  if (bits == 64 && w.halves && low >> 32 != high >> 32) return {};
  const Wide window = Wide{1} << bits, unit = Wide{1} << shift;
  const Wide least = Wide{truncate(s.sync->bytes == 4 ? 4 : bits / 8, s.value)} * unit, most = least + unit - 1;
  std::array<Span, 2> spans{{{0, -1}, {0, -1}}};
  switch (s.sync->func) {
    case Compare::ge: spans[0] = {least, window - 1}; break;
    case Compare::gt: spans[0] = {most + 1, window - 1}; break;
    case Compare::le: spans[0] = {0, most}; break;
    case Compare::lt: spans[0] = {0, least - 1}; break;
    case Compare::eq: spans[0] = {least, most}; break;
    case Compare::ne: spans = {{{0, least - 1}, {most + 1, window - 1}}}; break;
    default: spans[0] = {0, window - 1};
  }
  const auto floor = [&](Wide v) { return v >= 0 ? v / window : -((-v + window - 1) / window); };
  if (floor(high) - floor(low) > 1) return {};
  std::optional<Span> all{{high + 1, low - 1}};
  for (auto k = floor(low); k <= floor(high); ++k)
    for (const auto& span : spans) {
      const Span part{std::max(low, span.from + k * window), std::min(high, span.to + k * window)};
      if (part.from > part.to) continue;
      if (all->from <= all->to && all->to + 1 != part.from) return {};
      all = Span{std::min(all->from, part.from), part.to};
    }
  return all;
}

/// The most that a chain can add (sign +1) or subtract (sign -1) to what it has added before `begin`, if between `from`
/// and `to` of its posts have happened.
inline Wide extreme(const Chain& c, std::uint32_t begin, std::uint32_t from, std::uint32_t to, int sign) {
  const auto at = [&](std::uint32_t i) { return (c.sums[i] - c.sums[begin]) * sign; };
  from = std::max(from, begin);
  to = std::max(to, from);
  if (sign > 0 ? c.up : c.down) return at(to);
  if (sign > 0 ? c.down : c.up) return at(from);
  Wide most = at(from);
  for (auto i = from; i <= to; ++i) most = std::max(most, at(i));
  return most;
}

}}}  // namespace sdma::v0_3::check_detail
