// SPDX-License-Identifier: MIT
#pragma once
// Does a packet write bytes that it also reads, or write a byte twice? Engines move the bytes of a packet in any order,
// so the result of such a packet is undefined.
//
//   overlap(CopyLinear{.src = a, .dst = a + 64, .bytes = 128})        "dst" and "src", with both regions
//   overlap(CopySubwindow{...})                                       "dst" twice: its rows are longer than its pitch
//   if (const auto o = overlap(copy)) ...                             // false: each byte is read or written once
//
//   copy_subwindow   |aaaa|bb|aaaa|bb|aaaa|bb|     a: source, b: destination: rows between rows do not overlap
//
// The software engine refuses such packets, and the stream rules and the schedule checker report them, by this
// function. Boxes are compared exactly, row by row. The only exception is a box that overlaps itself: boxes whose
// rows and slices interlace, with neither rows within slices nor slices within rows, count as overlapping although
// some do not. Page table entries may be copied onto themselves, so packets that only the kernel uses do not
// overlap, except physical copies. Constant expressions without state or errors; the cost of comparing boxes depends
// only on their slices.
#include "../core/wide.hpp"
#include "sdma/packets/footprint.hpp"

namespace sdma { inline namespace v0_3 {

/// Two regions of a packet that have a byte in common, and the fields that hold their addresses. The first is written.
struct Overlap {
  std::string_view first{}, second{};  ///< the same field twice: the region overlaps itself
  Region a{}, b{};                     ///< the regions at `first` and at `second`
  constexpr explicit operator bool() const noexcept { return !first.empty(); }
};

namespace detail {

using Difference = Wide;

/// Do two runs of bytes overlap?
constexpr bool meet(GpuVa a, std::uint64_t a_bytes, GpuVa b, std::uint64_t b_bytes) noexcept {
  return a_bytes != 0 && b_bytes != 0 && (b - a < a_bytes || a - b < b_bytes);
}

/// Does a box contain a byte twice? Also true for some boxes that do not: see above.
constexpr bool meets_itself(const Region& r) noexcept {
  struct Steps {
    std::uint64_t n, pitch;
  };
  const bool rows_inside = r.pitch <= r.slice_pitch;
  const Steps rows{r.rows, r.pitch}, slices{r.slices, r.slice_pitch};
  auto extent = r.bytes;
  for (const auto& s : {rows_inside ? rows : slices, rows_inside ? slices : rows}) {
    if (s.n <= 1) continue;
    if (s.pitch < extent) return true;
    const auto more = (s.n - 1) * s.pitch;
    if (extent + more < more) return true;
    extent += more;
  }
  return false;
}

/// Is there an x for which l <= a * x mod m <= r? Returns the least, or -1. Requires a < m and 0 < l <= r < m.
constexpr Difference least_multiple(Difference a, Difference m, Difference l, Difference r) noexcept {
  if (l == 0) return 0;
  if (a == 0) return -1;
  if (const auto x = (l + a - 1) / a; a * x <= r) return x;
  // No multiple of `a` lies in [l, r], so -r mod a <= -l mod a.
  const auto y = least_multiple(m % a, a, (a - r % a) % a, (a - l % a) % a);
  return y < 0 ? -1 : (l + m * y + a - 1) / a;
}

/// Rows of one slice: `n` runs of `bytes` bytes, `pitch` apart.
struct Rows {
  Difference at, bytes, n, pitch;
  constexpr Difference end() const noexcept { return at + (n - 1) * pitch + bytes; }
};

/// Does a row of `a` overlap a row of `b`? Takes a time that depends only on the logarithm of the pitches.
constexpr bool rows_meet(Rows a, Rows b) noexcept {
  if (a.pitch == 0) a.n = 1;
  if (b.pitch == 0) b.n = 1;
  if (a.end() <= b.at || b.end() <= a.at) return false;
  // Row i of `a` meets row k of `b` if 0 <= t(i) - k * b.pitch <= window, where t(i) = first + i * a.pitch.
  const auto first = a.at - b.at + a.bytes - 1, window = a.bytes + b.bytes - 2;
  // Does an i in [from, to] exist with t(i) in [low, high]? If so, `from` becomes the least.
  const auto reaches = [&](Difference low, Difference high, Difference& from, Difference& to) {
    if (a.n == 1) return first >= low && first <= high;
    from = low <= first ? 0 : (low - first + a.pitch - 1) / a.pitch;
    if (high < first) return false;
    to = (high - first) / a.pitch;
    if (to > a.n - 1) to = a.n - 1;
    return from <= to;
  };
  const auto last = (b.n - 1) * b.pitch;
  Difference from = 0, to = 0;
  if (reaches(last, last + window, from, to)) return true;
  from = to = 0;
  if (last == 0 || !reaches(0, last - 1, from, to)) return false;
  const auto rest = (first + from * a.pitch) % b.pitch;
  if (rest <= window) return true;
  const auto x = least_multiple(a.pitch % b.pitch, b.pitch, b.pitch - rest, b.pitch - rest + window);
  return x >= 0 && from + x <= to;
}

/// Do two boxes have a byte in common? Exact.
constexpr bool meet(const Region& a, const Region& b) noexcept {
  if (a.rows == 1 && a.slices == 1 && b.rows == 1 && b.slices == 1) return meet(a.va, a.bytes, b.va, b.bytes);
  if (a.bytes == 0 || b.bytes == 0 || a.rows == 0 || b.rows == 0) return false;
  const auto rows = [](const Region& r, std::uint32_t slice) {
    return Rows{Difference{r.va.value} + Difference{slice} * Difference{r.slice_pitch}, Difference{r.bytes},
                Difference{r.rows}, Difference{r.pitch}};
  };
  for (std::uint32_t i = 0; i < a.slices; ++i) {
    const auto one = rows(a, i), begin = rows(b, 0);
    // The first slice of `b` that ends after this slice of `a` begins.
    const auto skip = b.slice_pitch == 0 || one.at < begin.end() ? 0 : (one.at - begin.end()) / b.slice_pitch + 1;
    for (auto k = skip; k < b.slices; ++k) {
      const auto other = rows(b, static_cast<std::uint32_t>(k));
      if (other.at >= one.end()) break;  // slices ascend
      if (rows_meet(one, other)) return true;
      if (b.slice_pitch == 0) break;
    }
    if (a.slice_pitch == 0) break;
  }
  return false;
}

/// Calls fn(region, field) for each region of which no byte may be written twice.
template <Packet P, class Fn> constexpr void each_exclusive(const P& p, Fn&& fn) {
  if constexpr (std::is_same_v<P, CopyPhysical>) physical_footprint(p, fn);
  else if constexpr (grammar::layout<P>.privilege != Privilege::kernel)
    if (role(p) == Role::data) footprint(p, fn);
}

}  // namespace detail

/// The first overlap in the packet's footprint.
template <Packet P> constexpr Overlap overlap(const P& p) noexcept {
  struct Named {
    Region region;
    std::string_view field;
  };
  std::array<Named, 3> all{};
  std::size_t n = 0;
  detail::each_exclusive(p, [&](const Region& r, std::string_view field) { all[n++] = {r, field}; });
  for (std::size_t i = 0; i < n; ++i) {
    const auto& [a, first] = all[i];
    if (!allows(a.access, Access::write)) continue;
    if (detail::meets_itself(a)) return {first, first, a, a};
    for (std::size_t k = 0; k < n; ++k)
      if (i != k && detail::meet(a, all[k].region)) return {first, all[k].field, a, all[k].region};
  }
  return {};
}

/// The same for a packet that is given as dwords. All its dwords must be present.
inline Overlap overlap(const PacketInfo& info, std::span<const std::uint32_t> dwords) noexcept {
  Overlap o;
  visit(info, dwords, [&](const auto& p) { o = overlap(p); });
  return o;
}

}}  // namespace sdma::v0_3
