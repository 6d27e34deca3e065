#include "admit.hpp"

#include <algorithm>
#include <utility>

namespace sdma::inline v0::detail {

namespace {

__extension__ typedef __int128 Int;

/// `n` runs whose starts are `pitch` apart.
struct Steps {
  std::uint64_t n = 1, pitch = 0;
  Int length() const noexcept { return Int{n - 1} * pitch; }
};

/// A region as `outer` copies of a progression of runs: each run begins at va + i * inner.pitch + k * outer.pitch.
struct Box {
  Int va{}, bytes{};
  Steps inner{}, outer{};
  bool nested = true;  ///< no copy begins before the end of the copy before it
  Int hull() const noexcept { return inner.length() + bytes; }
};

/// Merges runs that touch or overlap into one.
Box box_of(const Region& r) noexcept {
  Box b{.va = r.va.value, .bytes = r.bytes, .inner = {r.rows, r.pitch}, .outer = {r.slices, r.slice_pitch}};
  if (b.outer.n == 1 || (b.inner.n > 1 && b.outer.pitch < b.inner.pitch)) std::swap(b.inner, b.outer);
  for (auto* s : {&b.inner, &b.outer})
    if (s->n > 1 && s->pitch <= b.bytes) {
      b.bytes += s->length();
      *s = {};
    }
  b.nested = b.outer.n == 1 || b.outer.pitch >= b.hull();
  return b;
}

Int floor_div(Int a, Int b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }
Int ceil_div(Int a, Int b) noexcept { return -floor_div(-a, b); }
Int positive_mod(Int a, Int b) noexcept { return a - floor_div(a, b) * b; }

/// The least i >= 0 with a * i mod m in [from, to]; -1 if there is none. Euclid's algorithm: logarithmic in m.
/// Requires 0 <= a < m and 0 <= from <= to < m.
Int first_within(Int a, Int m, Int from, Int to) noexcept {
  if (from == 0) return 0;
  if (a == 0) return -1;
  const auto i = ceil_div(from, a);
  if (a * i <= to) return i;
  // No multiple of a lies in [from, to]: after how many times around m does one?
  const auto turns = first_within(m % a, a, positive_mod(-to, a), positive_mod(-from, a));
  return turns < 0 ? turns : ceil_div(from + m * turns, a);
}

/// Is k * b - i * a in [from, to] for an i < a.n and a k < b.n? `a` and `b` stand for their pitches. Exact.
bool differ_within(const Steps& a, const Steps& b, Int from, Int to) noexcept {
  if (from > to) return false;
  if (a.n == 1 || b.n == 1) {
    // One progression: x = i * pitch.
    const auto& s = a.n == 1 ? b : a;
    if (a.n != 1) std::swap(from, to), from = -from, to = -to;
    if (s.n == 1) return from <= 0 && to >= 0;
    const auto first = std::max<Int>(ceil_div(from, s.pitch), 0), last = std::min<Int>(floor_div(to, s.pitch), s.n - 1);
    return first <= last;
  }
  // For each i, the window [from, to] + i * a must contain a multiple of b from 0 to b's length.
  const auto first = std::max<Int>(ceil_div(-to, a.pitch), 0);
  const auto last = std::min<Int>(floor_div(b.length() - from, a.pitch), a.n - 1);
  if (first > last) return false;
  const auto window = [&](Int i) { return from + i * a.pitch; };
  // The first window may begin before 0, and contain it. The last window that ends before b's length is ...
  if (window(first) <= 0) return true;
  const auto inside = std::min(last, floor_div(b.length() - to, a.pitch));
  // ... this one, and the windows after it, if there are any, contain b's last run.
  if (inside < last) return true;
  const Int start = window(first), width = to - from;
  if (width + 1 >= Int{b.pitch}) return true;
  // A multiple of b lies in the window if (start + i * a) mod b is 0 or at least b - width.
  const auto low = positive_mod(-start - width, b.pitch), high = positive_mod(-start, b.pitch);
  if (low > high) return true;
  const auto i = first_within(a.pitch % b.pitch, b.pitch, low, high);
  return i >= 0 && i <= inside - first;
}

}  // namespace

bool meets_itself(const Region& r) noexcept {
  std::array<Steps, 2> steps{{{r.rows, r.pitch}, {r.slices, r.slice_pitch}}};
  if (steps[1].pitch < steps[0].pitch) std::swap(steps[0], steps[1]);
  auto extent = r.bytes;
  for (const auto& s : steps) {
    if (s.n <= 1) continue;
    if (s.pitch < extent) return true;
    if (__builtin_add_overflow(extent, (s.n - 1) * s.pitch, &extent)) return true;
  }
  return false;
}

bool boxes_meet(const Region& first, const Region& second) noexcept {
  if (first.bytes == 0 || second.bytes == 0) return false;
  auto a = box_of(first), b = box_of(second);
  // If copies lie one after another, few of them meet. Otherwise every pair may, so take the smaller dimension of each box: there are
  // fewer such pairs than runs.
  if (!a.nested || !b.nested)
    for (auto* box : {&a, &b})
      if (box->outer.n > box->inner.n) std::swap(box->inner, box->outer);
  const auto a_hull = a.hull(), b_hull = b.hull();
  for (std::uint64_t i = 0; i < a.outer.n; ++i) {
    // The copies of b whose hull meets that of this copy of a.
    const auto from = a.va + Int{i} * a.outer.pitch - b.va;
    Int k = 0, last = 0;
    if (b.outer.n > 1) {
      k = std::max<Int>(floor_div(from - b_hull, b.outer.pitch) + 1, 0);
      last = std::min<Int>(ceil_div(from + a_hull, b.outer.pitch), b.outer.n) - 1;
    }
    for (; k <= last; ++k) {
      const auto apart = k * b.outer.pitch - from;  // from the first run of a to that of b
      if (differ_within(a.inner, b.inner, -b.bytes + 1 - apart, a.bytes - 1 - apart)) return true;
    }
  }
  return false;
}

}  // namespace sdma::inline v0::detail
