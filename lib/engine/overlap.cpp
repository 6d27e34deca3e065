#include "admit.hpp"

#include <algorithm>

namespace sdma::inline v0::detail {

namespace {

struct Steps {
  std::uint64_t n, pitch;
};

/// Bytes from the start to the end of a box; all ones if that does not fit.
std::uint64_t hull(const Region& r) noexcept {
  std::uint64_t rows = 0, slices = 0, all = 0;
  if (__builtin_mul_overflow(r.rows - std::uint64_t{1}, r.pitch, &rows) ||
      __builtin_mul_overflow(r.slices - std::uint64_t{1}, r.slice_pitch, &slices) ||
      __builtin_add_overflow(rows, slices, &all) || __builtin_add_overflow(all, r.bytes, &all))
    return ~std::uint64_t{};
  return all;
}

/// Does [va, va + bytes) overlap one of `n` runs of `run` bytes, `pitch` apart, starting at `first`?
bool meets_rows(GpuVa va, std::uint64_t bytes, GpuVa first, std::uint64_t run, std::uint64_t n,
                std::uint64_t pitch) noexcept {
  if (pitch == 0 || n == 1) return meet(va, bytes, first, run);
  if (va < first) return first - va < bytes;  // all other runs lie at higher addresses
  const auto last = std::min(n - 1, (va - first) / pitch);
  // The last run that begins at or before `va`, and the next one. A row may be longer than its pitch, but earlier runs end
  // earlier, so they need no check.
  if (meet(va, bytes, first + last * pitch, run)) return true;
  return last + 1 < n && meet(va, bytes, first + (last + 1) * pitch, run);
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

bool boxes_meet(const Region& a, const Region& b) noexcept {
  if (!meet(a.va, hull(a), b.va, hull(b))) return false;
  for (std::uint32_t az = 0; az < a.slices; ++az)
    for (std::uint32_t ay = 0; ay < a.rows; ++ay)
      for (std::uint32_t bz = 0; bz < b.slices; ++bz)
        if (meets_rows(a.va + az * a.slice_pitch + ay * a.pitch, a.bytes, b.va + bz * b.slice_pitch, b.bytes, b.rows,
                       b.pitch))
          return true;
  return false;
}

}  // namespace sdma::inline v0::detail
