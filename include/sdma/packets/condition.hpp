// SPDX-License-Identifier: MIT
#pragma once
// The condition for which a poll waits, and what is certain about it even if the word is not known.
//
//   holds(value, Compare::ge, epoch)                                   as an engine or the host compares
//   can_hold(c), must_hold(c)                                          whether any or every value satisfies a condition
//   implies(c, d)                                                      whether every value that satisfies c satisfies d
//
// Comparisons are unsigned. These are plain values and functions of them; any thread may use them. No errors.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// The condition of a poll: `(value & mask) func reference`, unsigned. Code 7 is unassigned.
/// `always` holds. The others hold if the masked value is less than (`lt`), at most (`le`), equal to (`eq`), different
/// from (`ne`), at least (`ge`) or greater than (`gt`) the reference, unsigned.
enum class Compare : std::uint8_t { always, lt, le, eq, ne, ge, gt };
template <> inline constexpr auto grammar::names<Compare> = std::to_array<Name>(
    {{0, "always"}, {1, "lt"}, {2, "le"}, {3, "eq"}, {4, "ne"}, {5, "ge"}, {6, "gt"}});

/// Is `value f reference` true? Unsigned.
constexpr bool holds(std::uint64_t value, Compare f, std::uint64_t reference) noexcept {
  switch (f) {
    case Compare::always: return true;
    case Compare::lt: return value < reference;
    case Compare::le: return value <= reference;
    case Compare::eq: return value == reference;
    case Compare::ne: return value != reference;
    case Compare::ge: return value >= reference;
    case Compare::gt: return value > reference;
  }
  return false;
}

/// The condition of a poll: `(value & mask) func reference`.
struct Condition {
  Compare func{};  ///< the comparison
  std::uint32_t reference{}, mask = 0xffffffff;  ///< the right side, and the bits of the value that count
};
/// Is there a value that satisfies it?
constexpr bool can_hold(const Condition& c) noexcept {
  switch (c.func) {
    case Compare::always: return true;
    case Compare::lt: return c.reference != 0;
    case Compare::le: return true;                          // 0 is possible with every mask
    case Compare::eq: return (c.reference & ~c.mask) == 0;
    case Compare::ne: return c.mask != 0 || c.reference != 0;
    case Compare::ge: return c.mask >= c.reference;         // the mask is the largest value
    case Compare::gt: return c.mask > c.reference;
  }
  return false;
}
/// The condition that holds for exactly the other values. Requires a comparison: neither `always` nor code 7.
constexpr Condition opposite(Condition c) noexcept {
  constexpr Compare kOpposite[] = {{}, Compare::ge, Compare::gt, Compare::ne, Compare::eq, Compare::lt, Compare::le};
  c.func = kOpposite[static_cast<std::size_t>(c.func)];
  return c;
}
/// Does every value satisfy it?
constexpr bool must_hold(const Condition& c) noexcept {
  return c.func == Compare::always || (c.func <= Compare::gt && !can_hold(opposite(c)));
}
/// Does every value that satisfies `a` also satisfy `b`? May be false although it does, if masks differ or have gaps.
constexpr bool implies(const Condition& a, const Condition& b) noexcept {
  if (a.func > Compare::gt || b.func > Compare::gt) return false;
  if (must_hold(b) || !can_hold(a)) return true;
  if (a.func == Compare::eq && (b.mask & ~a.mask) == 0) return holds(a.reference & b.mask, b.func, b.reference);
  if (a.mask != b.mask) return false;
  if (a.func == Compare::ne && b.func == Compare::ne && a.reference == b.reference) return true;
  // Bounds of the values that satisfy `a`.
  std::uint64_t low = 0, high = a.mask;
  if (a.func == Compare::lt && a.reference <= high) high = a.reference - 1;
  if (a.func == Compare::le && a.reference < high) high = a.reference;
  if (a.func == Compare::ge) low = a.reference;
  if (a.func == Compare::gt) low = a.reference + std::uint64_t{1};
  if (b.func == Compare::ne) return b.reference < low || b.reference > high;
  return holds(low, b.func, b.reference) && holds(high, b.func, b.reference);
}

// clang-format on
}}  // namespace sdma::v0_3
