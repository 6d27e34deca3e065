// SPDX-License-Identifier: MIT
#pragma once
// Packets that copy, exchange or gather bytes.
//
//   CopyLinear{.src = a, .dst = b, .bytes = 4096}                      b[0, 4096) = a[0, 4096)
//   CopyBroadcast{.src = a, .dst1 = b, .dst2 = c, .bytes = 4096}       reads once, writes twice
//   CopySwap{.a = a, .b = b, .bytes = 4096}                            a <-> b, in place
//
// In these three, `bytes` is 1 to 2^30: SDMA 4.4.x stores the length minus one in 30 bits, as 5.2 and later do; 4.0 to
// 4.2 and 5.0 have 22 bits (max_bytes<CopyLinear>(generation)).
// Writer::copy splits longer copies. All public code leaves the `_swap` (endian swap) and `_policy` (cache policy)
// fields at 0. A cache policy follows each swap field; where a debugger alone says so, or it only follows from the
// other packets, the field is [inferred].
//
// Bits 30 and 31 of a copy's dw0 are 0: on the engines of gfx12.5, they say that the packet also waits or signals, and
// is longer. scoped.hpp has such packets, and all fields that gfx12.5 has; its swaps need multiples of 32 only.
//
// Ordering: consecutive copies of a queue may overlap and complete in any order, and the bytes of one copy may land in
// any order. Only a later FENCE or ATOMIC signals that the copies are complete. The source and the destination of a
// copy must not overlap.
// Errors: check(packet) names the field and the rule ("broadcast-modulo-32", ...). These are plain values; any thread
// may use them.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Copies `bytes` bytes from `src` to `dst`. Both are GPU virtual addresses and need no alignment.
struct CopyLinear {
  GpuVa src{}, dst{};
  std::uint32_t bytes{};                 ///< 1 to 2^30
  bool encrypt{}, tmz{};
  std::uint8_t src_swap{}, src_policy{}, dst_swap{}, dst_policy{};
  bool backwards{}, cpv{};               ///< cpv: the policies count; in 7.0, the packet also has `dcc`
  std::uint32_t dcc{};
  bool npd{};
};
template <> inline constexpr auto grammar::layout<CopyLinear> = packet(
    "copy_linear", op(1, 0).is(0, 27, 27, 0).is(0, 30, 31, 0), dwords(7), "copy bytes between two linear buffers",
    //     member                       name       dword  bits     meaning
    bits  <&CopyLinear::bytes>     ("bytes",      1,     0, 29,  "number of bytes", minus_one).size().moved(k22Bits, 1, 0, 21),
    addr64<&CopyLinear::src>       ("src",        3,             "source"),
    addr64<&CopyLinear::dst>       ("dst",        5,             "destination"),
    bits  <&CopyLinear::encrypt>   ("encrypt",    0,    16, 16,  "encrypted memory").opt(),
    bits  <&CopyLinear::tmz>       ("tmz",        0,    18, 18,  "trusted memory").opt(),
    bits  <&CopyLinear::src_swap>  ("src_swap",   2,    24, 25,  "endian swap of the source").opt(),
    bits  <&CopyLinear::src_policy>("src_policy", 2,    26, 28,  "cache policy of the source [inferred]").opt().in(kUnscoped),
    bits  <&CopyLinear::dst_swap>  ("dst_swap",   2,    16, 17,  "endian swap of the destination").opt(),
    bits  <&CopyLinear::dst_policy>("dst_policy", 2,    18, 20,  "cache policy of the destination [inferred]").opt().in(kUnscoped),
    bits  <&CopyLinear::backwards> ("backwards",  0,    25, 25,  "from the last byte to the first").opt().in(since(v5_0)),
    bits  <&CopyLinear::cpv>       ("cpv",        0,    19, 19,  "the cache policies count").opt().in(between(v6_0, v7_0)),
    bits  <&CopyLinear::dcc>       ("dcc",        7,     0, 31,  "how memory is compressed; 0: it is not").hex().opt().in(only(v7_0)),
    bits  <&CopyLinear::npd>       ("npd",        0,    28, 28,  "npd: no source says what it does").opt().in(only(v7_1)))
  | has(only(v7_0), dwords(8).optional(7, 1, "cpv"));

/// Reads `src` once and writes it to two destinations, whose addresses must be equal modulo 32.
struct CopyBroadcast {
  GpuVa src{}, dst1{}, dst2{};
  std::uint32_t bytes{};                 ///< 1 to 2^30
  bool encrypt{}, tmz{};
  std::uint8_t src_swap{}, src_policy{}, dst1_swap{}, dst1_policy{}, dst2_swap{}, dst2_policy{};
  bool cpv{};                            ///< the policies count
};
template <> inline constexpr auto grammar::layout<CopyBroadcast> = packet(
    "copy_broadcast", op(1, 0).is(0, 27, 27, 1), dwords(9), "copy bytes to two destinations, reading once",
    bits  <&CopyBroadcast::bytes>      ("bytes",       1,  0, 29, "number of bytes", minus_one).size().moved(k22Bits, 1, 0, 21),
    addr64<&CopyBroadcast::src>        ("src",         3,         "source"),
    addr64<&CopyBroadcast::dst1>       ("dst1",        5,         "first destination"),
    addr64<&CopyBroadcast::dst2>       ("dst2",        7,         "second destination"),
    bits  <&CopyBroadcast::encrypt>    ("encrypt",     0, 16, 16, "encrypted memory").opt(),
    bits  <&CopyBroadcast::tmz>        ("tmz",         0, 18, 18, "trusted memory").opt(),
    bits  <&CopyBroadcast::src_swap>   ("src_swap",    2, 24, 25, "endian swap of the source").opt(),
    bits  <&CopyBroadcast::src_policy> ("src_policy",  2, 26, 28, "cache policy of the source").opt().in(kPolicies),
    bits  <&CopyBroadcast::dst1_swap>  ("dst1_swap",   2, 16, 17, "endian swap of the first destination").opt(),
    bits  <&CopyBroadcast::dst1_policy>("dst1_policy", 2, 18, 20, "cache policy of the first destination").opt().in(kPolicies),
    bits  <&CopyBroadcast::dst2_swap>  ("dst2_swap",   2,  8,  9, "endian swap of the second destination").opt(),
    bits  <&CopyBroadcast::dst2_policy>("dst2_policy", 2, 10, 12, "cache policy of the second destination").opt().in(kPolicies),
    bits  <&CopyBroadcast::cpv>        ("cpv",         0, 19, 19, "the cache policies count").opt().in(kCpv))
  | rule<CopyBroadcast>("broadcast-modulo-32", "dst1 and dst2 must be equal modulo 32",
        [](const CopyBroadcast& p) { return (p.dst1.value ^ p.dst2.value) % 32 == 0; });

/// Exchanges the `bytes` bytes at `a` with those at `b`, both 64-byte aligned. No source says whether a reader can see
/// a partly completed exchange, or what happens if the length is not a multiple of 64. Use multiples of 64.
struct CopySwap {
  GpuVa a{}, b{};
  std::uint32_t bytes{};                 ///< 1 to 2^30
  std::uint8_t b_swap{}, b_policy{}, a_swap{}, a_policy{};
};
template <> inline constexpr auto grammar::layout<CopySwap> = packet(
    "copy_swap", op(1, 9).is(0, 30, 31, 0), dwords(7), "exchange the bytes of two buffers",
    bits  <&CopySwap::bytes>   ("bytes",    1,  0, 29, "number of bytes", minus_one).size(),
    addr64<&CopySwap::a>       ("a",        3,         "one buffer").aligned(64),
    addr64<&CopySwap::b>       ("b",        5,         "the other").aligned(64),
    bits  <&CopySwap::b_swap>  ("b_swap",   2, 24, 25, "endian swap of b").opt(),
    bits  <&CopySwap::b_policy>("b_policy", 2, 26, 28, "cache policy of b").opt().in(between(v4_4_2, v4_4_5)),
    bits  <&CopySwap::a_swap>  ("a_swap",   2, 16, 17, "endian swap of a").opt(),
    bits  <&CopySwap::a_policy>("a_policy", 2, 18, 20, "cache policy of a").opt().in(between(v4_4_2, v4_4_5)))
  | in(between(v4_4_2, v4_4_5) | only(v7_1));

/// Scatters `count` elements from a linear buffer into an array of structures, starting at element `start`. With
/// `detile`, it gathers them from the array into the buffer. An element is one dword, and elements of the array are
/// `stride` dwords apart [inferred].
struct CopyStruct {
  GpuVa table{}, linear{};
  std::uint32_t start{}, count{};
  std::uint16_t stride{};
  bool tmz{}, detile{};
  std::uint8_t linear_swap{}, table_swap{}, linear_policy{}, table_policy{};
  bool cpv{};                            ///< the policies count
};
template <> inline constexpr auto grammar::layout<CopyStruct> = packet(
    "copy_struct", op(1, 3), dwords(8), "copy between an array of structures and a linear buffer",
    addr64<&CopyStruct::table>      ("table",       1,         "the array of structures").aligned(4),
    bits  <&CopyStruct::start>      ("start",       3,  0, 31, "first element"),
    bits  <&CopyStruct::count>      ("count",       4,  0, 31, "elements"),
    bits  <&CopyStruct::stride>     ("stride",      5,  0, 10, "dwords from one element to the next [inferred]"),
    addr64<&CopyStruct::linear>     ("linear",      6,         "the linear buffer").aligned(4),
    bits  <&CopyStruct::tmz>        ("tmz",         0, 18, 18, "trusted memory").opt(),
    bits  <&CopyStruct::detile>     ("detile",      0, 31, 31, "from the array to the linear buffer").opt(),
    bits  <&CopyStruct::linear_swap>("linear_swap", 5, 16, 17, "endian swap of the linear buffer").opt(),
    bits  <&CopyStruct::table_swap> ("table_swap",  5, 24, 25, "endian swap of the array").opt(),
    bits  <&CopyStruct::linear_policy>("linear_policy", 5, 18, 20, "cache policy of the linear buffer [inferred]").opt().in(kPolicies),
    bits  <&CopyStruct::table_policy> ("table_policy",  5, 26, 28, "cache policy of the array [inferred]").opt().in(kPolicies),
    bits  <&CopyStruct::cpv>        ("cpv",         0, 28, 28, "the cache policies count").opt().in(kCpv));

/// Copies a box of x * y * z elements, each of 2^element_log2 bytes, between two pitched volumes. Pitches and slices
/// are in elements. 7.0 and 7.1 have larger boxes and slices, and shorter pitches; others from 5.0 on have more slices.
struct CopySubwindow {
  GpuVa src{}, dst{};                    ///< dword aligned; the box begins at (src_x, src_y, src_z) from there
  std::uint8_t element_log2{};           ///< 0 to 4: 1 to 16 bytes
  std::uint32_t src_pitch{1}, dst_pitch{1};
  std::uint64_t src_slice{1}, dst_slice{1};
  std::uint32_t x{1}, y{1}, z{1};
  std::uint16_t src_x{}, src_y{}, src_z{}, dst_x{}, dst_y{}, dst_z{};
  bool tmz{};
  std::uint8_t dst_swap{}, src_swap{}, dst_policy{}, src_policy{};
  bool cpv{};                            ///< the policies count
};
template <> inline constexpr auto grammar::layout<CopySubwindow> = packet(
    "copy_subwindow", op(1, 4), dwords(13), "copy a box between two pitched volumes",
    bits  <&CopySubwindow::element_log2>("element_log2", 0, 29, 31, "log2 of the bytes of an element").up_to(4),
    addr64<&CopySubwindow::src>         ("src",          1,         "source volume").aligned(4),
    bits  <&CopySubwindow::src_pitch>   ("src_pitch",    4, 13, 31, "elements per row of the source", minus_one).moved(k16BitBoxes, 4, 16, 31),
    addr64<&CopySubwindow::dst>         ("dst",          6,         "destination volume").aligned(4),
    bits  <&CopySubwindow::dst_pitch>   ("dst_pitch",    9, 13, 31, "elements per row of the destination", minus_one).moved(k16BitBoxes, 9, 16, 31),
    bits  <&CopySubwindow::x>           ("x",           11,  0, 13, "elements of the box in x", minus_one).moved(k16BitBoxes, 11, 0, 15),
    bits  <&CopySubwindow::src_x>       ("src_x",        3,  0, 13, "start in the source").opt().moved(k16BitBoxes, 3, 0, 15),
    bits  <&CopySubwindow::src_y>       ("src_y",        3, 16, 29, "first row in the source").opt().moved(k16BitBoxes, 3, 16, 31),
    bits  <&CopySubwindow::src_z>       ("src_z",        4,  0, 10, "first slice in the source").opt().moved(k13BitSlices, 4, 0, 12).moved(k16BitBoxes, 4, 0, 13),
    bits  <&CopySubwindow::src_slice>   ("src_slice",    5,  0, 27, "elements per slice of the source", minus_one).opt().moved(k16BitBoxes, 5, 0, 31),
    bits  <&CopySubwindow::dst_x>       ("dst_x",        8,  0, 13, "start in the destination").opt().moved(k16BitBoxes, 8, 0, 15),
    bits  <&CopySubwindow::dst_y>       ("dst_y",        8, 16, 29, "first row in the destination").opt().moved(k16BitBoxes, 8, 16, 31),
    bits  <&CopySubwindow::dst_z>       ("dst_z",        9,  0, 10, "first slice in the destination").opt().moved(k13BitSlices, 9, 0, 12).moved(k16BitBoxes, 9, 0, 13),
    bits  <&CopySubwindow::dst_slice>   ("dst_slice",   10,  0, 27, "elements per slice of the destination", minus_one).opt().moved(k16BitBoxes, 10, 0, 31),
    bits  <&CopySubwindow::y>           ("y",           11, 16, 29, "rows of the box", minus_one).opt().moved(k16BitBoxes, 11, 16, 31),
    bits  <&CopySubwindow::z>           ("z",           12,  0, 10, "slices of the box", minus_one).opt().moved(k13BitSlices, 12, 0, 12).moved(k16BitBoxes, 12, 0, 13),
    bits  <&CopySubwindow::tmz>         ("tmz",          0, 18, 18, "trusted memory").opt(),
    bits  <&CopySubwindow::dst_swap>    ("dst_swap",    12, 16, 17, "endian swap of the destination").opt(),
    bits  <&CopySubwindow::src_swap>    ("src_swap",    12, 24, 25, "endian swap of the source").opt(),
    bits  <&CopySubwindow::dst_policy>  ("dst_policy",  12, 18, 20, "cache policy of the destination").opt().in(between(v4_4, v4_4_5) | between(v5_2, v7_0)).moved(only(v7_0), 12, 20, 22),
    bits  <&CopySubwindow::src_policy>  ("src_policy",  12, 26, 28, "cache policy of the source").opt().in(between(v4_4, v4_4_5) | between(v5_2, v7_0)).moved(only(v7_0), 12, 28, 30),
    bits  <&CopySubwindow::cpv>         ("cpv",          0, 19, 19, "the cache policies count").opt().in(kCpv))
  | rule<CopySubwindow>("subwindow-pitch", "pitches must be multiples of 4 bytes, and so must slices if the box has several",
        [](const CopySubwindow& p) {
          const auto whole = [&](std::uint64_t elements) { return (elements << (p.element_log2 & 7)) % 4 == 0; };
          return (p.y == 1 || (whole(p.src_pitch) && whole(p.dst_pitch)))
              && (p.z == 1 || (whole(p.src_slice) && whole(p.dst_slice)));
        });

// clang-format on
}}  // namespace sdma::v0_3
