// SPDX-License-Identifier: MIT
#pragma once
// Copies that become one call of the driver: their addresses in the arrays that the call takes.
//
//   if (held.full() || held.clashes(dst, src, bytes)) ...       // issue them first
//   held.add(dst, src, bytes);
//   driver.copy_batch_13_0(held.dst(), held.src(), held.bytes(), held.count(), ...);  held.clear();
//
// The copies of a batch have no order among themselves, so a copy that writes what another one reads or writes must not
// join it. In a long list of copies almost none does, and to compare each with all others would cost more than the
// rest of a copy's way. So a table remembers the aligned pieces ("granules") of memory that the destinations touch, and
// only a copy that meets one of them is compared with each:
//
//   granule = the length of the first copy, rounded up to a power of two
//   dst     |....XXXX|XX......|        touches two granules at most if it is no longer than one
//   table   slot(granule) = the number of the batch that has touched it last; so clear() is one addition
//
// `clashes` is exact. One thread at a time. No allocation, no errors. Internal.
#include "cuda_driver.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

constexpr bool overlap(Pointer a, std::size_t a_bytes, Pointer b, std::size_t b_bytes) noexcept {
  return a < b + b_bytes && b < a + a_bytes;
}

/// The bytes from the first of some ranges to the last.
struct Hull {
  Pointer begin{}, end{};
  std::size_t bytes() const noexcept { return end - begin; }
  void widen(Pointer at, std::size_t n) noexcept {
    begin = std::min(begin, at);
    end = std::max(end, at + n);
  }
};

class HeldCopies {
 public:
  static constexpr std::uint32_t kMost = 64;

  std::uint32_t count() const noexcept { return count_; }
  bool full() const noexcept { return count_ == kMost; }
  const Pointer* dst() const noexcept { return dst_.data(); }
  const Pointer* src() const noexcept { return src_.data(); }
  const std::size_t* bytes() const noexcept { return bytes_.data(); }

  /// Does their order matter, to this copy and to any of those that are held?
  bool clashes(Pointer dst, Pointer src, std::size_t bytes) const noexcept {
    if (count_ == 0) return false;
    const bool apart = !overlap(dst, bytes, from_.begin, from_.bytes()) && !overlap(src, bytes, to_.begin, to_.bytes());
    if (apart && !long_ && bytes <= std::size_t{1} << shift_ && !touched(dst) && !touched(dst + bytes - 1)) [[likely]]
      return false;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (overlap(dst, bytes, dst_[i], bytes_[i]) || overlap(dst, bytes, src_[i], bytes_[i]) ||
          overlap(src, bytes, dst_[i], bytes_[i]))
        return true;
    return false;
  }
  /// Requires !full(), and bytes != 0.
  void add(Pointer dst, Pointer src, std::size_t bytes) noexcept {
    if (count_ == 0) {
      shift_ = static_cast<unsigned>(std::countr_zero(std::bit_ceil(bytes)));
      from_ = {src, src};
      to_ = {dst, dst};
    }
    dst_[count_] = dst;
    src_[count_] = src;
    bytes_[count_++] = bytes;
    from_.widen(src, bytes);
    to_.widen(dst, bytes);
    long_ = long_ || bytes > std::size_t{1} << shift_;
    table_[slot(dst)] = table_[slot(dst + bytes - 1)] = batch_;
  }
  void clear() noexcept {
    count_ = 0;
    long_ = false;
    if (++batch_ != 0) return;
    table_.fill(0);
    batch_ = 1;
  }

 private:
  static constexpr unsigned kSlots = 4096, kSlotBits = 12;

  std::size_t slot(Pointer at) const noexcept {
    return static_cast<std::size_t>((at >> shift_) * 0x9e3779b97f4a7c15 >> (64 - kSlotBits));
  }
  bool touched(Pointer at) const noexcept { return table_[slot(at)] == batch_; }

  std::array<Pointer, kMost> dst_{}, src_{};
  std::array<std::size_t, kMost> bytes_{};
  std::uint32_t count_ = 0, batch_ = 1;
  unsigned shift_ = 0;
  bool long_ = false;  ///< one of them is longer than a granule: the table does not know all that it touches
  Hull from_{}, to_{};
  std::array<std::uint32_t, kSlots> table_{};
};

}}}  // namespace sdma::v0_3::detail::cuda
