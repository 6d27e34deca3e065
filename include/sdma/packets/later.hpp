// SPDX-License-Identifier: MIT
#pragma once
// The fields and lengths that packets have in later generations if kPackets only recognises them, as data without a C++
// type. Internal: catalogue() builds its lists from it.
//
//   for (const Later& l : kLater) ...      // {"copy_tiled", since(v5_0), dwords(13), fields}
//
// A row belongs to the packet of that name in the generations that it lists; the others have the length of kRecognised,
// and no fields. A row without fields only gives a length. Positions are those of the kernel's packet headers for 5.0,
// 6.0 and 7.1, and so are names. A value is what the bits hold: the headers do not say which of them are stored minus
// one. Where the `dcc` bit decides a length, the lengths are those that Mesa and PAL send (docs/packets.md).
//
// Constants: any thread may read them. No errors.
#include "sdma/packets/bits.hpp"
#include "sdma/packets/condition.hpp"

#include <array>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {

namespace later {
using namespace grammar;

// clang-format off
inline constexpr auto k6 = since(v6_0);                         // where the header of 6.0 has more fields
inline constexpr auto kMeta = between(v5_0, v6_1) | only(v7_1);  // where a surface's metadata takes three dwords

constexpr auto access(int cpv) noexcept {
  return list(Bits{"tmz", 0, 18, 18, "trusted memory"}, Bits{"cpv", 0, cpv, cpv, "the cache policies count"}.in(k6));
}
constexpr auto linear(int d) noexcept { return list(Bits{"linear", d, 0, 63, "the linear surface"}); }
/// The fields of one tiled surface, from dword `d` on.
constexpr auto tiling(int d) noexcept {
  return list(Bits{"width", d, 0, 13, "of the tiled surface"}.moved(k12, 0, 15), Bits{"height", d + 1, 0, 13, "of the tiled surface"}.moved(k12, 0, 15),
              Bits{"depth", d + 1, 16, 28, "of the tiled surface"}.moved(k12, 16, 29), Bits{"element_size", d + 2, 0, 2, "log2 of the bytes of an element"},
              Bits{"swizzle_mode", d + 2, 3, 7, "how it is tiled"}, Bits{"dimension", d + 2, 9, 10, "of the tiled surface"},
              Bits{"mip_max", d + 2, 16, 19, "its last mip level"}.moved(k12, 0, 20, 24), Bits{"x", d + 3, 0, 13, "first element"}.moved(k12, 0, 15),
              Bits{"y", d + 3, 16, 29, "first row"}.moved(k12, 16, 31), Bits{"z", d + 4, 0, 12, "first slice"}.moved(k12, 0, 13));
}
/// How a surface is tiled in the older forms, in dword `d`.
constexpr auto older_tiling(int d) noexcept {
  return list(Bits{"element_size", d, 0, 2, "log2 of the bytes of an element"}, Bits{"array_mode", d, 3, 6, "how it is tiled"},
              Bits{"mit_mode", d, 8, 10, "micro tile mode"}, Bits{"tilesplit_size", d, 11, 13, "tile split"},
              Bits{"bank_w", d, 15, 16, "bank width"}, Bits{"bank_h", d, 18, 19, "bank height"},
              Bits{"num_bank", d, 21, 22, "number of banks"}, Bits{"mat_aspt", d, 24, 25, "macro tile aspect"},
              Bits{"pipe_config", d, 26, 30, "pipe configuration"});
}
/// The same, of a whole surface in the older forms, from dword `d` on.
constexpr auto older_surface(int d) noexcept {
  return list(Bits{"width", d, 0, 13, "of the tiled surface"}, Bits{"height", d + 1, 0, 13, "of the tiled surface"},
              Bits{"depth", d + 1, 16, 26, "of the tiled surface"}, Bits{"x", d + 3, 0, 13, "first element"},
              Bits{"y", d + 3, 16, 29, "first row"}, Bits{"z", d + 4, 0, 10, "first slice"});
}
/// What the dcc bit adds, from dword `d` on: the metadata of a compressed surface.
constexpr auto metadata(int d) noexcept {
  return list(Bits{"dcc", 0, 19, 19, "a surface is compressed: the packet is longer"},
              Bits{"meta", d, 0, 63, "the metadata"}.in(kMeta), Bits{"data_format", d + 2, 0, 6, "metadata: format"}.in(kMeta),
              Bits{"color_transform_disable", d + 2, 7, 7, "metadata: no colour transform"}.in(kMeta),
              Bits{"alpha_is_on_msb", d + 2, 8, 8, "metadata: where alpha is"}.in(kMeta),
              Bits{"number_type", d + 2, 9, 11, "metadata: type of numbers"}.in(kMeta),
              Bits{"surface_type", d + 2, 12, 13, "metadata: type of the surface"}.in(kMeta),
              Bits{"meta_llc", d + 2, 14, 14, "metadata: last level cache"}.in(between(v6_0, v6_1) | only(v7_1)),
              Bits{"max_comp_block_size", d + 2, 24, 25, "metadata: largest compressed block"}.in(kMeta),
              Bits{"max_uncomp_block_size", d + 2, 26, 27, "metadata: largest uncompressed block"}.in(kMeta),
              Bits{"write_compress_enable", d + 2, 28, 28, "metadata: writes are compressed"}.in(kMeta),
              Bits{"meta_tmz", d + 2, 29, 29, "metadata: trusted memory"}.in(kMeta),
              Bits{"pipe_aligned", d + 2, 31, 31, "metadata: pipe aligned"}.in(between(v6_0, v6_1) | only(v7_1)),
              Bits{"dcc_config", d, 0, 31, "how memory is compressed"}.hex().in(only(v7_0)));
}
/// Byte order and cache policies of two sides, in dword `d`. In 7.0, PAL has a policy of two bits where the kernel's
/// header, which is that of 6.0, has the highest bit of one.
constexpr auto sides(int d, std::string_view low_swap, std::string_view low_policy, std::string_view low_mall, std::string_view high_swap,
                     std::string_view high_policy, std::string_view high_mall) noexcept {
  return list(Bits{low_swap, d, 16, 17, "endian swap"}, Bits{low_policy, d, 18, 20, "cache policy"}.in(k6).moved(k12, 18, 19),
              Bits{high_swap, d, 24, 25, "endian swap"}, Bits{high_policy, d, 26, 28, "cache policy"}.in(k6).moved(k12, 26, 27),
              Bits{low_mall, d, 20, 21, "policy in the last level"}.in(k12), Bits{high_mall, d, 28, 29, "policy in the last level"}.in(k12));
}
constexpr auto swaps(int d, std::string_view low, std::string_view high) noexcept {
  return list(Bits{low, d, 16, 17, "endian swap"}, Bits{high, d, 24, 25, "endian swap"});
}
inline constexpr auto kEncrypt = list(Bits{"encrypt", 0, 16, 16, "encrypted memory"});
inline constexpr auto kDetile = list(Bits{"detile", 0, 31, 31, "from the tiled surface to the linear one"});

inline constexpr auto kCopyTiled = fields(kDetile, kEncrypt, access(19), list(Bits{"tiled", 1, 0, 63, "the tiled surface"}),
    tiling(3), sides(7, "linear_swap", "linear_policy", "linear_mall", "tile_swap", "tile_policy", "tile_mall"), linear(8),
    list(Bits{"linear_cc", 7, 20, 20, "linear: cc"}.in(between(v5_0, v5_2)), Bits{"linear_pitch", 10, 0, 18, "of the linear surface"}.moved(k12, 0, 15),
         Bits{"linear_slice_pitch", 11, 0, 31, "of the linear surface"},
         Bits{"count", 12, 0, 29, "of elements"}.moved(between(v5_0, v5_2), 12, 0, 21)));
inline constexpr auto kCopyTiledBroadcast = fields(
    list(Bits{"frame_to_field", 0, 26, 26, "copy a frame to two fields"}), kEncrypt, access(19),
    list(Bits{"tiled0", 1, 0, 63, "the first tiled surface"}, Bits{"tiled1", 3, 0, 63, "the second tiled surface"}), tiling(5),
    list(Bits{"dst2_swap", 10, 8, 9, "endian swap"}, Bits{"dst2_policy", 10, 10, 12, "cache policy"}.in(k6).moved(k12, 10, 11),
         Bits{"dst2_mall", 10, 12, 13, "policy in the last level"}.in(k12)),
    sides(10, "linear_swap", "linear_policy", "linear_mall", "tile_swap", "tile_policy", "tile_mall"), linear(11),
    list(Bits{"linear_pitch", 13, 0, 18, "of the linear surface"}.moved(k12, 0, 15), Bits{"linear_slice_pitch", 14, 0, 31, "of the linear surface"},
         Bits{"count", 15, 0, 29, "of elements"}.moved(between(v5_0, v5_2), 15, 0, 21)));
inline constexpr auto kCopyTiledSubwindow = fields(kDetile, access(28), metadata(14),
    list(Bits{"tiled", 1, 0, 63, "the tiled surface"}, Bits{"tiled_x", 3, 0, 13, "first element"}.moved(k12, 0, 15), Bits{"tiled_y", 3, 16, 29, "first row"}.moved(k12, 16, 31),
         Bits{"tiled_z", 4, 0, 12, "first slice"}.moved(k12, 0, 13), Bits{"width", 4, 16, 29, "of the tiled surface"}.moved(k12, 16, 31),
         Bits{"height", 5, 0, 13, "of the tiled surface"}.moved(k12, 0, 15), Bits{"depth", 5, 16, 28, "of the tiled surface"}.moved(k12, 16, 29),
         Bits{"element_size", 6, 0, 2, "log2 of the bytes of an element"}, Bits{"swizzle_mode", 6, 3, 7, "how it is tiled"},
         Bits{"dimension", 6, 9, 10, "of the tiled surface"}, Bits{"mip_max", 6, 16, 19, "its last mip level"}.moved(k12, 16, 20),
         Bits{"mip_id", 6, 20, 23, "the mip level"}.moved(k12, 24, 28)), linear(7),
    list(Bits{"linear_x", 9, 0, 13, "first element"}.moved(k12, 0, 15), Bits{"linear_y", 9, 16, 29, "first row"}.moved(k12, 16, 31), Bits{"linear_z", 10, 0, 12, "first slice"}.moved(k12, 0, 13),
         Bits{"linear_pitch", 10, 16, 29, "of the linear surface"}.moved(k12, 16, 31), Bits{"linear_slice_pitch", 11, 0, 27, "of the linear surface"}.moved(k12, 0, 31),
         Bits{"rect_x", 12, 0, 13, "elements of the box"}.moved(k12, 0, 15), Bits{"rect_y", 12, 16, 29, "rows of the box"}.moved(k12, 16, 31),
         Bits{"rect_z", 13, 0, 12, "slices of the box"}.moved(k12, 0, 13)), sides(13, "linear_swap", "linear_policy", "linear_mall", "tile_swap", "tile_policy", "tile_mall"));
inline constexpr auto kCopyTiledToTiled = fields(list(Bits{"dcc_dir", 0, 31, 31, "which surface is compressed"}), access(28), metadata(15),
    list(Bits{"src", 1, 0, 63, "source surface"}, Bits{"src_x", 3, 0, 13, "first element"}.moved(k12, 0, 15), Bits{"src_y", 3, 16, 29, "first row"}.moved(k12, 16, 31),
         Bits{"src_z", 4, 0, 12, "first slice"}.moved(k12, 0, 13), Bits{"src_width", 4, 16, 29, "of the source"}.moved(k12, 16, 31),
         Bits{"src_height", 5, 0, 13, "of the source"}.moved(k12, 0, 15), Bits{"src_depth", 5, 16, 28, "of the source"}.moved(k12, 16, 29),
         Bits{"src_element_size", 6, 0, 2, "log2 of the bytes of an element"}, Bits{"src_swizzle_mode", 6, 3, 7, "how it is tiled"},
         Bits{"src_dimension", 6, 9, 10, "of the source"}, Bits{"src_mip_max", 6, 16, 19, "its last mip level"}.moved(k12, 16, 20),
         Bits{"src_mip_id", 6, 20, 23, "the mip level"}.moved(k12, 24, 28), Bits{"dst", 7, 0, 63, "destination surface"},
         Bits{"dst_x", 9, 0, 13, "first element"}.moved(k12, 0, 15), Bits{"dst_y", 9, 16, 29, "first row"}.moved(k12, 16, 31), Bits{"dst_z", 10, 0, 12, "first slice"}.moved(k12, 0, 13),
         Bits{"dst_width", 10, 16, 29, "of the destination"}.moved(k12, 16, 31), Bits{"dst_height", 11, 0, 13, "of the destination"}.moved(k12, 0, 15),
         Bits{"dst_depth", 11, 16, 28, "of the destination"}.moved(k12, 16, 29), Bits{"dst_element_size", 12, 0, 2, "log2 of the bytes of an element"},
         Bits{"dst_swizzle_mode", 12, 3, 7, "how it is tiled"}, Bits{"dst_dimension", 12, 9, 10, "of the destination"},
         Bits{"dst_mip_max", 12, 16, 19, "its last mip level"}.moved(k12, 16, 20), Bits{"dst_mip_id", 12, 20, 23, "the mip level"}.moved(k12, 24, 28),
         Bits{"rect_x", 13, 0, 13, "elements of the box"}.moved(k12, 0, 15), Bits{"rect_y", 13, 16, 29, "rows of the box"}.moved(k12, 16, 31),
         Bits{"rect_z", 14, 0, 12, "slices of the box"}.moved(k12, 0, 13)), sides(14, "dst_swap", "dst_policy", "dst_mall", "src_swap", "src_policy", "src_mall"));
inline constexpr auto kWriteTiled = fields(kEncrypt, access(28), list(Bits{"dst", 1, 0, 63, "the tiled surface"}), tiling(3),
    list(Bits{"swap", 7, 24, 25, "endian swap"}, Bits{"policy", 7, 26, 28, "cache policy"}.in(k6).moved(k12, 26, 27),
         Bits{"mall", 7, 28, 29, "policy in the last level"}.in(k12), Bits{"data", 8, 0, 19, "the dwords"}.less_one().payload()));
inline constexpr auto kCopySubwindowLarge = fields(access(19),
    list(Bits{"src", 1, 0, 63, "source volume"}, Bits{"src_x", 3, 0, 31, "first element"}, Bits{"src_y", 4, 0, 31, "first row"},
         Bits{"src_z", 5, 0, 31, "first slice"}, Bits{"src_pitch", 6, 0, 31, "elements per row"}, Bits{"src_slice", 7, 0, 47, "elements per slice"},
         Bits{"dst", 9, 0, 63, "destination volume"}, Bits{"dst_x", 11, 0, 31, "first element"}, Bits{"dst_y", 12, 0, 31, "first row"},
         Bits{"dst_z", 13, 0, 31, "first slice"}, Bits{"dst_pitch", 14, 0, 31, "elements per row"}, Bits{"dst_slice", 15, 0, 47, "elements per slice"},
         Bits{"rect_x", 17, 0, 31, "elements of the box"}, Bits{"rect_y", 18, 0, 31, "rows of the box"}, Bits{"rect_z", 19, 0, 31, "slices of the box"}),
    sides(16, "dst_swap", "dst_policy", "dst_mall", "src_swap", "src_policy", "src_mall"));

inline constexpr auto kCopyLinearBc = fields(
    list(Bits{"count", 1, 0, 21, "of bytes"}, Bits{"src", 3, 0, 63, "source"}, Bits{"dst", 5, 0, 63, "destination"},
         Bits{"dst_ha", 2, 19, 19, "destination: ha"}.moved(between(v5_0, v5_2), 2, 22, 22),
         Bits{"src_ha", 2, 27, 27, "source: ha"}.moved(between(v5_0, v5_2), 2, 30, 30)), swaps(2, "dst_swap", "src_swap"));
inline constexpr auto kCopySubwindowBc = fields(
    list(Bits{"element_size", 0, 29, 31, "log2 of the bytes of an element"}, Bits{"src", 1, 0, 63, "source volume"},
         Bits{"src_x", 3, 0, 13, "first element"}, Bits{"src_y", 3, 16, 29, "first row"}, Bits{"src_z", 4, 0, 10, "first slice"},
         Bits{"src_pitch", 4, 13, 26, "elements per row"}, Bits{"src_slice", 5, 0, 27, "elements per slice"},
         Bits{"dst", 6, 0, 63, "destination volume"}, Bits{"dst_x", 8, 0, 13, "first element"}, Bits{"dst_y", 8, 16, 29, "first row"},
         Bits{"dst_z", 9, 0, 10, "first slice"}, Bits{"dst_pitch", 9, 13, 26, "elements per row"}, Bits{"dst_slice", 10, 0, 27, "elements per slice"},
         Bits{"rect_x", 11, 0, 13, "elements of the box"}, Bits{"rect_y", 11, 16, 29, "rows of the box"}, Bits{"rect_z", 12, 0, 10, "slices of the box"},
         Bits{"dst_ha", 12, 19, 19, "destination: ha"}.moved(between(v5_0, v5_2), 12, 22, 22),
         Bits{"src_ha", 12, 27, 27, "source: ha"}.moved(between(v5_0, v5_2), 12, 30, 30)), swaps(12, "dst_swap", "src_swap"));
inline constexpr auto kCopyTiledBc = fields(kDetile, list(Bits{"tiled", 1, 0, 63, "the tiled surface"}), older_surface(3), older_tiling(5),
    swaps(7, "linear_swap", "tile_swap"), linear(8),
    list(Bits{"linear_pitch", 10, 0, 18, "of the linear surface"}, Bits{"linear_slice_pitch", 11, 0, 31, "of the linear surface"}.in(k6),
         Bits{"count", 12, 2, 21, "of elements"}.moved(between(v5_0, v5_2), 11, 2, 21)));
inline constexpr auto kCopyTiledSubwindowBc = fields(kDetile,
    list(Bits{"tiled", 1, 0, 63, "the tiled surface"}, Bits{"tiled_x", 3, 0, 13, "first element"}, Bits{"tiled_y", 3, 16, 29, "first row"},
         Bits{"tiled_z", 4, 0, 10, "first slice"}, Bits{"width", 4, 16, 29, "of the tiled surface"},
         Bits{"height", 5, 0, 13, "of the tiled surface"}, Bits{"depth", 5, 16, 26, "of the tiled surface"}), older_tiling(6), linear(7),
    list(Bits{"linear_x", 9, 0, 13, "first element"}, Bits{"linear_y", 9, 16, 29, "first row"}, Bits{"linear_z", 10, 0, 10, "first slice"},
         Bits{"linear_pitch", 10, 16, 29, "of the linear surface"}, Bits{"linear_slice_pitch", 11, 0, 27, "of the linear surface"},
         Bits{"rect_x", 12, 0, 13, "elements of the box"}, Bits{"rect_y", 12, 16, 29, "rows of the box"}, Bits{"rect_z", 13, 0, 10, "slices of the box"}),
    swaps(13, "linear_swap", "tile_swap"));
constexpr auto older_side(std::string_view a, std::string_view b, std::string_view c, std::string_view d, std::string_view e, std::string_view f,
                          std::string_view g, std::string_view h, std::string_view i, int at) noexcept {
  auto t = older_tiling(at);
  for (std::size_t k = 0; const auto name : {a, b, c, d, e, f, g, h, i}) t[k++].name = name;
  return t;
}
inline constexpr auto kCopyTiledToTiledBc = fields(
    list(Bits{"src", 1, 0, 63, "source surface"}, Bits{"src_x", 3, 0, 13, "first element"}, Bits{"src_y", 3, 16, 29, "first row"},
         Bits{"src_z", 4, 0, 10, "first slice"}, Bits{"src_width", 4, 16, 29, "of the source"}, Bits{"src_height", 5, 0, 13, "of the source"},
         Bits{"src_depth", 5, 16, 26, "of the source"}),
    older_side("src_element_size", "src_array_mode", "src_mit_mode", "src_tilesplit_size", "src_bank_w", "src_bank_h", "src_num_bank", "src_mat_aspt", "src_pipe_config", 6),
    list(Bits{"dst", 7, 0, 63, "destination surface"}, Bits{"dst_x", 9, 0, 13, "first element"}, Bits{"dst_y", 9, 16, 29, "first row"},
         Bits{"dst_z", 10, 0, 10, "first slice"}, Bits{"dst_width", 10, 16, 29, "of the destination"}, Bits{"dst_height", 11, 0, 13, "of the destination"},
         Bits{"dst_depth", 11, 16, 27, "of the destination"}),
    older_side("dst_element_size", "dst_array_mode", "dst_mit_mode", "dst_tilesplit_size", "dst_bank_w", "dst_bank_h", "dst_num_bank", "dst_mat_aspt", "dst_pipe_config", 12),
    list(Bits{"rect_x", 13, 0, 13, "elements of the box"}, Bits{"rect_y", 13, 16, 29, "rows of the box"}, Bits{"rect_z", 14, 0, 10, "slices of the box"}),
    swaps(14, "dst_swap", "src_swap"));
inline constexpr auto kWriteTiledBc = fields(list(Bits{"dst", 1, 0, 63, "the tiled surface"}), older_surface(3), older_tiling(5),
    list(Bits{"swap", 7, 24, 25, "endian swap"}, Bits{"data", 8, 2, 21, "the dwords"}.less_one().payload()));

inline constexpr auto kVmInvalidate = fields(
    list(Bits{"gfx_eng_id", 0, 16, 20, "engine of the graphics hub"}, Bits{"mm_eng_id", 0, 24, 28, "engine of the other hub"},
         Bits{"request", 1, 0, 31, "what is invalidated"}.hex(), Bits{"address_low", 2, 0, 31, "first page, low bits"}.hex(),
         Bits{"address_high", 3, 16, 20, "first page, high bits"}.hex(), Bits{"ack", 3, 0, 15, "acknowledgement"}));
inline constexpr auto kGpuvmInvalidate = fields(
    list(Bits{"vmids", 1, 0, 15, "one bit per address space"}.hex(), Bits{"flush_type", 1, 16, 18, "how"}, Bits{"l2_ptes", 1, 19, 19, "entries in L2"},
         Bits{"l2_pde0", 1, 20, 20, "directories in L2"}, Bits{"l2_pde1", 1, 21, 21, "directories in L2"}, Bits{"l2_pde2", 1, 22, 22, "directories in L2"},
         Bits{"l1_ptes", 1, 23, 23, "entries in L1"}, Bits{"clear_fault_status", 1, 24, 24, "clear the address of a fault"},
         Bits{"log_request", 1, 25, 25, "log the request"}, Bits{"four_kilobytes", 1, 26, 26, "pages of 4 KiB only"}, Bits{"one_page", 2, 0, 0, "one page, not all"},
         Bits{"page", 2, 1, 31, "number of the page, low bits"}.hex(), Bits{"page_high", 3, 0, 5, "number of the page, high bits"}.hex()));
inline constexpr auto kRegisterModify = fields(
    list(Bits{"die", 0, 16, 17, "virtual die"}.in(k12), Bits{"domain", 0, 18, 18, "domain"}.in(k12), Bits{"bridge", 0, 19, 19, "bridge"}.in(k12)),
    list(Bits{"reg", 1, 0, 19, "the register"}.hex(), Bits{"aperture", 1, 20, 31, "its aperture"}, Bits{"mask", 2, 0, 31, "bits that change"}.hex(),
         Bits{"value", 3, 0, 31, "their new values"}.hex(), Bits{"stride", 4, 0, 19, "from one register to the next"}, Bits{"registers", 4, 20, 31, "number of registers"}));

// Packets of gfx12 (PAL), and of gfx12.5 (OSS7).
inline constexpr auto kFill12 = list(Bits{"comp", 0, 16, 16, "compress although no page table entry says so"}, Bits{"unit", 0, 30, 31, "the unit that is repeated"});
inline constexpr auto kFence = list(Bits{"addr", 1, 0, 63, "the word"}.required(), Bits{"value", 3, 0, 63, "stored"}.hex(),
    Bits{"reference_addr", 5, 0, 63, "the word that decides about the interrupt"}, Bits{"context", 7, 0, 31, "passed to the handler"}.hex(),
    Bits{"wide", 0, 31, 31, "64 bits, not 32"});
inline constexpr auto kFenceInterrupt12 = fields(kFence, memory(0), mall("mall", 0, 26));
inline constexpr auto kFenceInterrupt = fields(kFence, list(Bits{"mtype", 0, 16, 17, "memory type"}, Bits{"snoop", 0, 22, 22, "snooped"},
    Bits{"gpa", 0, 23, 23, "a physical address"}), scoped("scope", "hint", 0, 24), list(Bits{"fence", 8, 0, 31, "id of the fence"}.hex()));
inline constexpr auto kPollMemMes = fields(
    list(Bits{"addr", 1, 0, 63, "the 64-bit word"}.aligned(4).required(), Bits{"func", 0, 28, 30, "comparison"}.named(names<Compare>).required(),
         Bits{"reference", 3, 0, 63, "right-hand side"}.hex(), Bits{"mask", 5, 0, 63, "bits to compare"}.hex(),
         Bits{"retry", 7, 16, 23, "number of reads before the poll expires; 0: forever"}, Bits{"policy", 0, 24, 26, "cache policy"},
         Bits{"fence", 8, 0, 31, "handle of the fence"}.hex()), memory(0));
inline constexpr auto kCondExecExclusive = fields(
    list(Bits{"mutex", 1, 0, 63, "the mutex"}, Bits{"addr", 3, 0, 63, "the word"}, Bits{"reference", 5, 0, 63, "value for which the packets execute"}.hex(),
         Bits{"dwords", 7, 0, 13, "number of dwords to skip"}, Bits{"p", 0, 30, 30, "p: no source says what it does"},
         Bits{"o", 0, 31, 31, "o: no source says what it does"}));
inline constexpr auto kFillPage12 = fields(kFill12, memory(0), mall("mall", 0, 26), list(Bits{"data", 1, 0, 31, "the value"}.hex(),
    Bits{"page_unit", 2, 0, 3, "size of a page"}, Bits{"pages", 2, 16, 31, "number of pages"}, Bits{"dst", 3, 0, 63, "the first page"}));
inline constexpr auto kFillPage = fields(list(Bits{"data", 1, 0, 31, "the value"}.hex(), Bits{"page_unit", 2, 0, 3, "size of a page"},
    Bits{"pages", 2, 16, 31, "their addresses, low dwords first"}.payload().required(), Bits{"unit", 0, 30, 31, "the unit that is repeated"},
    Bits{"mtype", 0, 16, 17, "memory type"}), memory(0), scoped("scope", "hint", 0, 24));
inline constexpr auto kTransfer = list(Bits{"tmz", 0, 18, 18, "trusted memory"}, Bits{"page_size", 0, 24, 27, "size of a page"},
    Bits{"direction", 0, 31, 31, "from local memory to the system's, or the other way round"}, Bits{"pte_sys", 1, 4, 4, "entries: system memory"},
    Bits{"pte_snoop", 1, 6, 6, "entries: snooped"}, Bits{"local_snoop", 1, 14, 14, "local memory: snooped"},
    Bits{"system_snoop", 1, 22, 22, "system memory: snooped"}, Bits{"dcc_config", 2, 0, 31, "how memory is compressed"}.hex(),
    Bits{"mask", 3, 0, 63, "bits of the entries"}.hex(), Bits{"pte", 5, 0, 63, "the entries"}, Bits{"local", 7, 0, 63, "local memory"});
inline constexpr auto kPageTransfer12 = fields(kTransfer, mall("pte_mall", 1, 0), mall("local_mall", 1, 8), mall("system_mall", 1, 16),
    list(Bits{"addresses", 1, 24, 31, "number of addresses in system memory"}, Bits{"system", 9, 0, 63, "system memory"}));
inline constexpr auto kPageTransfer = fields(kTransfer,
    list(Bits{"system", 1, 24, 31, "addresses in system memory, low dwords first"}.payload().required(), Bits{"pte_mtype", 0, 16, 17, "entries: memory type"},
         Bits{"local_scope", 0, 19, 20, "local memory: scope"}.named(names<Scope>), Bits{"system_scope", 0, 21, 22, "system memory: scope"}.named(names<Scope>),
         Bits{"pte_scope", 0, 29, 30, "entries: scope"}.named(names<Scope>), Bits{"pte_hint", 1, 0, 2, "entries: temporal hint"},
         Bits{"local_hint", 1, 8, 10, "local memory: temporal hint"}, Bits{"local_mtype", 1, 11, 12, "local memory: memory type"},
         Bits{"system_hint", 1, 16, 18, "system memory: temporal hint"}, Bits{"system_mtype", 1, 19, 20, "system memory: memory type"}));
inline constexpr auto kDecompressLinear = fields(list(Bits{"src", 1, 0, 63, "the memory"}.aligned(256).required(), Bits{"count", 3, 8, 31, "how much: the upper 24 bits of a number of bytes"},
    Bits{"tmz", 0, 18, 18, "trusted memory"}), mall("mall", 0, 26));
inline constexpr auto kDecompressSubwindow = fields(
    list(Bits{"src", 1, 0, 63, "the tiled surface"}.aligned(256).required(), Bits{"x", 3, 0, 15, "first element"}, Bits{"y", 3, 16, 31, "first row"},
         Bits{"z", 4, 0, 13, "first slice"}, Bits{"width", 4, 16, 31, "of the tiled surface"}, Bits{"height", 5, 0, 15, "of the tiled surface"},
         Bits{"depth", 5, 16, 29, "of the tiled surface"}, Bits{"element_size", 6, 0, 2, "log2 of the bytes of an element"},
         Bits{"swizzle_mode", 6, 3, 7, "how it is tiled"}, Bits{"dimension", 6, 9, 10, "of the tiled surface"},
         Bits{"mip_max", 6, 16, 20, "its last mip level"}, Bits{"mip_id", 6, 24, 28, "the mip level"}, Bits{"rect_x", 7, 0, 15, "elements of the box"},
         Bits{"rect_y", 7, 16, 31, "rows of the box"}, Bits{"rect_z", 8, 0, 13, "slices of the box"}, Bits{"tmz", 0, 18, 18, "trusted memory"}),
    mall("mall", 0, 26));
// clang-format on

/// The op that 4.x has for a trap (dummy_trap).
inline constexpr auto kGpuvmInvalidatePacket =
    recognised("gpuvm_invalidate", op(16, 0), 4, "invalidate translations of a GPU", 1, since(v5_0));
}  // namespace later

// clang-format off
inline constexpr std::array kLaterPackets{
    Later{"copy_tiled",                grammar::since(Generation::v5_0), grammar::dwords(13), later::kCopyTiled},
    Later{"copy_tiled_frame_to_field", grammar::since(Generation::v5_0), grammar::dwords(16), std::span(later::kCopyTiledBroadcast).subspan(1)},
    Later{"copy_tiled_broadcast",      grammar::since(Generation::v5_0), grammar::dwords(16), later::kCopyTiledBroadcast},
    Later{"copy_tiled_subwindow",      later::kMeta,                     grammar::dwords(17).optional(14, 3, "dcc"), later::kCopyTiledSubwindow},
    Later{"copy_tiled_subwindow",      grammar::only(Generation::v7_0),  grammar::dwords(15).optional(14, 1, "dcc"), later::kCopyTiledSubwindow},
    Later{"copy_tiled_to_tiled",       later::kMeta,                     grammar::dwords(18).optional(15, 3, "dcc"), later::kCopyTiledToTiled},
    Later{"copy_tiled_to_tiled",       grammar::only(Generation::v7_0),  grammar::dwords(16).optional(15, 1, "dcc"), later::kCopyTiledToTiled},
    Later{"copy_subwindow_large",      grammar::since(Generation::v6_0), grammar::dwords(20), later::kCopySubwindowLarge},
    Later{"write_tiled",               grammar::since(Generation::v5_0), grammar::dwords(9, "data"), later::kWriteTiled},
    Later{"copy_linear_bc",            grammar::since(Generation::v5_0), grammar::dwords(7), later::kCopyLinearBc},
    Later{"copy_tiled_bc",             grammar::between(Generation::v5_0, Generation::v5_2), grammar::dwords(12), later::kCopyTiledBc},
    Later{"copy_tiled_bc",             grammar::since(Generation::v6_0), grammar::dwords(13), later::kCopyTiledBc},
    Later{"copy_subwindow_bc",         grammar::since(Generation::v5_0), grammar::dwords(13), later::kCopySubwindowBc},
    Later{"copy_tiled_subwindow_bc",   grammar::since(Generation::v5_0), grammar::dwords(14), later::kCopyTiledSubwindowBc},
    Later{"copy_tiled_to_tiled_bc",    grammar::since(Generation::v5_0), grammar::dwords(15), later::kCopyTiledToTiledBc},
    Later{"write_tiled_bc",            grammar::since(Generation::v5_0), grammar::dwords(9, "data"), later::kWriteTiledBc},
    Later{"fence_interrupt",           grammar::between(Generation::v6_0, Generation::v6_1), grammar::dwords(1)},
    Later{"fence_interrupt",           later::k12, grammar::dwords(8), later::kFenceInterrupt12, Privilege::user, {.fixed = {9, 1}}},
    Later{"fence_interrupt",           grammar::only(Generation::v7_1), grammar::dwords(9), later::kFenceInterrupt, Privilege::user, {.fixed = {8, 1}}},
    Later{"poll_mem_mes",              grammar::only(Generation::v7_1), grammar::dwords(9), later::kPollMemMes},
    Later{"cond_exec_exclusive",       grammar::only(Generation::v7_1), grammar::dwords(8), later::kCondExecExclusive},
    Later{"fill_page",                 later::k12, grammar::dwords(5), later::kFillPage12, Privilege::user,
          {.listed = "pages", .before = 3, .stride = 2}},
    Later{"fill_page",                 grammar::only(Generation::v7_1), grammar::dwords(3, "pages", 2), later::kFillPage, Privilege::user,
          {.fixed = {5}, .listed = "pages", .before = 3, .stride = 2}},
    Later{"copy_page_transfer",        later::k12, grammar::dwords(11), later::kPageTransfer12, Privilege::user,
          {.listed = "addresses", .before = 9, .stride = 2}},
    Later{"copy_page_transfer",        grammar::only(Generation::v7_1), grammar::dwords(9, "system", 2), later::kPageTransfer, Privilege::user,
          {.fixed = {11}, .listed = "system", .before = 9, .stride = 2}},
    Later{"decompress_linear",         later::k12, grammar::dwords(4), later::kDecompressLinear},
    Later{"decompress_subwindow",      later::k12, grammar::dwords(9), later::kDecompressSubwindow},
    Later{"vm_invalidate",             grammar::since(Generation::v6_0), grammar::dwords(4), later::kVmInvalidate, Privilege::kernel},
    Later{"register_modify",           grammar::since(Generation::v6_0), grammar::dwords(5), later::kRegisterModify, Privilege::kernel},
    Later{"gpuvm_invalidate",          grammar::since(Generation::v5_0), grammar::dwords(4), later::kGpuvmInvalidate, Privilege::kernel},
};
// clang-format on

}}}  // namespace sdma::v0_3::detail
