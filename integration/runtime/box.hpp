// SPDX-License-Identifier: MIT
#pragma once
// Boxes of any size, cut into packets.
//
//   Box box{.src = {.base = a, .pitch = 4096, .slice = 4096 * 64, .x = 3}, .dst = {...}, .x = 100, .y = 40, .z = 2};
//   if (auto e = check(box); e != Errc::ok) return e;
//   each_tile(box, generation, [&](const CopySubwindow& p) { return w.put(p); });    // the first error ends it
//
//   volume  base --+-- pitch bytes per row, slice bytes per plane
//                  +-- the box begins at (x bytes, y rows, z planes) and has x bytes, y rows and z planes
//
// Elements. A packet counts in elements of 1 to 16 bytes. The largest element that divides both pitches, both slices
// (if the box has several planes) and the width, and on which both sides begin, gives the fewest. Where the box is
// wider than a packet can be, tiles are as wide as a packet allows, and only the last one ends on a smaller element.
//
// A packet begins at a dword; the bytes from there to the box are its start in x. A plane whose pitch does not fit
// the packet is copied with each row as a plane of one row.
//
// Errors: Errc::bad_argument, from `check`. A pitch or slice that no packet can hold is found later: the Writer refuses
// the packet. Pure functions; any thread may call them.
#include "sdma/core/result.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace runtime {

/// One side of a copy of a box.
struct Volume {
  sdma::GpuVa base{};              ///< 4-byte aligned
  std::uint64_t pitch{}, slice{};  ///< bytes; multiples of 4. The slice counts only if the box has several planes
  std::uint64_t x{}, y{}, z{};     ///< where the box begins: bytes, rows, planes

  /// The address of a byte, row and plane of the box.
  constexpr sdma::GpuVa at(std::uint64_t dx, std::uint64_t dy, std::uint64_t dz) const noexcept {
    return base + (x + dx + (y + dy) * pitch + (z + dz) * slice);
  }
};

struct Box {
  Volume src{}, dst{};
  std::uint64_t x{}, y{}, z{};  ///< its size: bytes, rows, planes

  /// How many bytes it has.
  constexpr std::uint64_t bytes() const noexcept { return x * y * z; }
};

/// bad_argument: the box is empty, wider than its volume, has 2^64 bytes or more, or begins or advances off a dword.
constexpr sdma::Errc check(const Box& b) noexcept {
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > ~std::uint64_t{0} / b.y / b.z) return sdma::Errc::bad_argument;
  const auto bad = [&](const Volume& v) {
    return v.base.value % 4 != 0 || v.pitch % 4 != 0 || v.slice % 4 != 0 || v.x > v.pitch || b.x > v.pitch - v.x ||
           (b.z > 1 && v.slice == 0);
  };
  return bad(b.src) || bad(b.dst) ? sdma::Errc::bad_argument : sdma::Errc::ok;
}

namespace detail {

/// The largest element that divides a length: log2 of 1 to 16 bytes. That of several is the one of their OR.
constexpr unsigned element_of(std::uint64_t bytes) noexcept {
  return static_cast<unsigned>(std::countr_zero(bytes | 16));
}

/// The most elements, rows and planes of a packet. Before 7.0, all sources agree on the planes of 4.x, and ROCr keeps
/// to them.
struct Limits {
  std::uint64_t x, y, z, pitch;
  explicit constexpr Limits(sdma::Generation g) noexcept
      : x(sdma::max_of<&sdma::CopySubwindow::x>(g)),
        y(sdma::max_of<&sdma::CopySubwindow::y>(g)),
        z(sdma::max_of<&sdma::CopySubwindow::z>(g < sdma::Generation::v7_0 ? sdma::kDefaultGeneration : g)),
        pitch(sdma::max_of<&sdma::CopySubwindow::src_pitch>(g)) {}
};

/// A plane as planes of one row each, whose pitch is not used.
constexpr Volume rows_as_planes(const Volume& v) noexcept {
  return {.base = v.at(0, 0, 0), .pitch = 0, .slice = v.pitch, .x = 0, .y = 0, .z = 0};
}

}  // namespace detail

/// Calls `put` with the packets of a box that `check` accepts, in order, until it returns an error.
template <class Put> constexpr sdma::Errc each_tile(Box b, sdma::Generation g, Put put) {
  using detail::element_of;
  const detail::Limits most{g};
  if (b.z == 1 && std::max(b.src.pitch, b.dst.pitch) > most.pitch)
    b = {detail::rows_as_planes(b.src), detail::rows_as_planes(b.dst), b.x, 1, b.y};
  const bool planes = b.z != 1;
  const auto steps = b.src.pitch | b.dst.pitch | (planes ? b.src.slice | b.dst.slice : 0);
  const auto pitch = [&](const Volume& v, unsigned element) {
    return static_cast<std::uint32_t>(v.pitch == 0 ? most.pitch : v.pitch >> element);
  };
  const auto slice = [&](const Volume& v, unsigned element) { return planes ? v.slice >> element : 1; };
  for (std::uint64_t z = 0; z < b.z; z += most.z)
    for (std::uint64_t y = 0; y < b.y; y += most.y)
      for (std::uint64_t x = 0; x < b.x;) {
        const auto src = b.src.at(x, y, z), dst = b.dst.at(x, y, z);
        const auto begins = element_of(steps | ((src.value | dst.value) & 3));
        auto element = std::min(begins, element_of(b.x - x));
        if ((b.x - x) >> element > most.x) element = begins;
        const auto width = std::min((b.x - x) >> element, most.x);
        const sdma::CopySubwindow tile{.src = sdma::GpuVa{src.value - src.value % 4},
                                       .dst = sdma::GpuVa{dst.value - dst.value % 4},
                                       .element_log2 = static_cast<std::uint8_t>(element),
                                       .src_pitch = pitch(b.src, element),
                                       .dst_pitch = pitch(b.dst, element),
                                       .src_slice = slice(b.src, element),
                                       .dst_slice = slice(b.dst, element),
                                       .x = static_cast<std::uint32_t>(width),
                                       .y = static_cast<std::uint32_t>(std::min(b.y - y, most.y)),
                                       .z = static_cast<std::uint32_t>(std::min(b.z - z, most.z)),
                                       .src_x = static_cast<std::uint16_t>(src.value % 4 >> element),
                                       .dst_x = static_cast<std::uint16_t>(dst.value % 4 >> element)};
        if (const auto e = put(tile); e != sdma::Errc::ok) return e;
        x += width << element;
      }
  return sdma::Errc::ok;
}

}  // namespace runtime
