// SPDX-License-Identifier: MIT
#include "effect.hpp"

#include <algorithm>
#include <cstring>

namespace sdma::emulator {
namespace {

/// Fills `to` with the pattern, beginning `phase` bytes into it.
void fill(std::span<std::byte> to, std::span<const std::byte> pattern, std::uint64_t phase) noexcept {
  if (std::all_of(pattern.begin(), pattern.end(), [&](std::byte b) { return b == pattern[0]; })) {
    std::memset(to.data(), std::to_integer<int>(pattern[0]), to.size());
    return;
  }
  // One pattern byte by byte, then doublings of what is there.
  const auto first = std::min(to.size(), pattern.size());
  for (std::size_t i = 0; i < first; ++i) to[i] = pattern[(phase + i) % pattern.size()];
  for (auto n = first; n < to.size();) {
    const auto more = std::min(n, to.size() - n);
    std::memcpy(to.data() + n, to.data(), more);
    n += more;
  }
}

template <class T> T* word(std::byte* at) noexcept { return reinterpret_cast<T*>(at); }

}  // namespace

Effect::Step Effect::step(AddressSpace::Reader& memory, GpuVa* missing) noexcept {
  return std::visit([&](const auto& what) { return step(what, memory, missing); }, what_);
}

Effect::Step Effect::step(const Rows& r, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
  if (r.row_bytes == 0 || r.rows == 0) return Step::complete;
  auto left = kStepBytes, rows = kStepRows;
  for (; slice_ < r.slices; ++slice_, row_ = 0)
    for (; row_ < r.rows; ++row_, byte_ = 0, --rows) {
      if (rows == 0) return Step::more;
      while (byte_ < r.row_bytes) {
        if (left == 0) return Step::more;
        const auto dst = r.dst + slice_ * r.dst_slice + row_ * r.dst_row + byte_;
        const auto to = memory.run(dst, std::min(left, r.row_bytes - byte_), Access::write);
        if (to.empty()) return *missing = dst, Step::unmapped;
        auto n = to.size();
        if (r.pattern_bytes != 0) {
          fill(to, {r.pattern.data(), r.pattern_bytes}, byte_ % r.pattern_bytes);
        } else {
          const auto src = r.src + slice_ * r.src_slice + row_ * r.src_row + byte_;
          const auto from = memory.run(src, n, Access::read);
          if (from.empty()) return *missing = src, Step::unmapped;
          n = from.size();
          std::memmove(to.data(), from.data(), n);
        }
        byte_ += n;
        left -= n;
      }
    }
  return Step::complete;
}

Effect::Step Effect::step(const Store& s, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
  const auto bytes = s.wide ? 8u : 4u;
  auto* to = s.at.value % bytes == 0 ? memory.at(s.at, bytes, Access::write) : nullptr;
  if (!to) return *missing = s.at, Step::unmapped;
  if (s.wide) __atomic_store_n(word<std::uint64_t>(to), s.value, __ATOMIC_RELEASE);
  else __atomic_store_n(word<std::uint32_t>(to), static_cast<std::uint32_t>(s.value), __ATOMIC_RELEASE);
  return Step::complete;
}

Effect::Step Effect::step(const Wait& w, AddressSpace::Reader& memory, GpuVa* missing) noexcept {
  const auto bytes = w.wide ? 8u : 4u;
  auto* from = w.at.value % bytes == 0 ? memory.at(w.at, bytes, Access::read) : nullptr;
  if (!from) return *missing = w.at, Step::unmapped;
  const auto all = w.wide ? ~std::uint64_t{0} : std::uint64_t{~std::uint32_t{0}};
  const auto v = w.wide ? __atomic_load_n(word<std::uint64_t>(from), __ATOMIC_ACQUIRE)
                        : __atomic_load_n(word<std::uint32_t>(from), __ATOMIC_ACQUIRE);
  const auto value = w.value & all, mask = w.mask & all;
  bool met = false;
  switch (w.until) {
    case Wait::Until::at_least: met = (v & mask) >= value; break;
    case Wait::Until::equal: met = (v & mask) == value; break;
    case Wait::Until::and_not_zero: met = (v & mask & value) != 0; break;
    case Wait::Until::nor_not_zero: met = (~(v | value) & mask) != 0; break;
  }
  return met ? Step::complete : Step::waits;
}

}  // namespace sdma::emulator
