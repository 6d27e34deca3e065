// SPDX-License-Identifier: MIT
#pragma once
// Boxes of equal shape whose rows are issued together, plane by plane.
//
//   plane 0   |..A0..B0..C0..|      box A = rows A0, A1, ..; the next plane begins a pitch further
//   plane 1   |..A1..B1..C1..|      order of the copies: A0 B0 C0 A1 B1 C1 ..
//
//   if (!boxes.take(c)) ...         // issue those that are held first; an empty one takes every box
//   boxes.row(r, i)                 // a row of box i
//
// Engines are slower if each copy goes to another plane: 0.82 us for a row of 32 KiB in an order of boxes, and 0.64 us
// plane by plane (H200, bench/serving/driver.cu). The order may change, because no row of one box touches a row of
// another: the first rows lie within one pitch and do not overlap, and all that is read is apart from all that is
// written. One thread at a time. No allocation, no errors. Internal.
#include "held_copies.hpp"

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

class HeldBoxes {
 public:
  /// So many rows are worth an order, and few enough that the engine has work until they are issued.
  static constexpr std::uint64_t kRows = 2 * HeldCopies::kMost;

  std::uint32_t count() const noexcept { return first_.count(); }
  std::uint64_t rows() const noexcept { return shape_.height; }
  bool full() const noexcept { return first_.full() || count() * rows() >= kRows; }
  void clear() noexcept { first_.clear(); }

  /// False: it has another shape, or its rows touch those of another box.
  bool take(const Copy2D& c) noexcept {
    if (count() == 0) {
      shape_ = c;
      to_ = {c.dst, c.dst + c.width};
      from_ = {c.src, c.src + c.width};
    } else {
      const bool equal = c.width == shape_.width && c.height == shape_.height && c.src_pitch == shape_.src_pitch &&
                         c.dst_pitch == shape_.dst_pitch;
      auto to = to_, from = from_;
      to.widen(c.dst, c.width);
      from.widen(c.src, c.width);
      const auto more = shape_.height - 1;
      if (!equal || full() || to.bytes() > shape_.dst_pitch || first_.clashes(c.dst, c.src, c.width) ||
          overlap(to.begin, to.bytes() + more * c.dst_pitch, from.begin, from.bytes() + more * c.src_pitch))
        return false;
      to_ = to;
      from_ = from;
    }
    first_.add(c.dst, c.src, c.width);
    return true;
  }
  struct Row {
    Pointer dst{}, src{};
    std::size_t bytes{};
  };
  Row row(std::uint64_t r, std::uint32_t box) const noexcept {
    return {first_.dst()[box] + r * shape_.dst_pitch, first_.src()[box] + r * shape_.src_pitch, shape_.width};
  }
  Copy2D whole(std::uint32_t box) const noexcept {
    auto c = shape_;
    c.dst = first_.dst()[box];
    c.src = first_.src()[box];
    return c;
  }

 private:
  HeldCopies first_{};  ///< rows
  Copy2D shape_{};
  Hull to_{}, from_{};
};

}}}  // namespace sdma::v0_3::detail::cuda
