// SPDX-License-Identifier: MIT
#pragma once
// Packets that copy pages by their state or by their physical address. The kernel alone sends them, so a client that
// builds its own packets does not read this header. sdma/packets/registry.hpp includes it: every reader knows them.
//
//   CopyDirtyPage{.src = a, .dst = b, .bytes = 65536}     the pages of a that were written to
//   CopyPhysical{.src = a, .dst = b, .bytes = 4096}       a and b are physical addresses
//
// Ordering: as the copies of sdma/packets/copy.hpp: only a later FENCE or ATOMIC signals that they are complete.
// Errors: check(packet) names the field and the rule. These are plain values; any thread may use them.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Copies those pages of a range that have been written to since their dirty bits were cleared; with `all`, every page.
struct CopyDirtyPage {
  GpuVa src{}, dst{};
  std::uint32_t bytes{};                 ///< 1 to 2^22
  bool all{}, tmz{};
  std::uint8_t dst_swap{};
  bool dst_gcc{}, dst_sys{}, dst_snoop{}, dst_gpa{};
  std::uint8_t src_swap{};
  bool src_sys{}, src_snoop{}, src_gpa{};
  std::uint8_t dst_policy{}, src_policy{};
  std::uint8_t dst_mtype{}, dst_l2_policy{};  ///< from 5.0 on, as all members after them
  bool dst_llc_policy{};
  std::uint8_t src_mtype{}, src_l2_policy{};
  bool src_llc_policy{}, cpv{};
};
template <> inline constexpr auto grammar::layout<CopyDirtyPage> = packet(
    "copy_dirty_page", op(1, 7), dwords(7), "copy the pages that were written to",
    bits  <&CopyDirtyPage::bytes>    ("bytes",     1,  0, 21, "number of bytes", minus_one).size(),
    addr64<&CopyDirtyPage::src>      ("src",       3,         "source"),
    addr64<&CopyDirtyPage::dst>      ("dst",       5,         "destination"),
    bits  <&CopyDirtyPage::all>      ("all",       0, 31, 31, "copy clean pages too").opt(),
    bits  <&CopyDirtyPage::tmz>      ("tmz",       0, 18, 18, "trusted memory").opt(),
    bits  <&CopyDirtyPage::dst_swap> ("dst_swap",  2, 16, 17, "endian swap of the destination").opt().moved(since(v6_0), 2, 17, 18),
    bits  <&CopyDirtyPage::dst_gcc>  ("dst_gcc",   2, 19, 19, "destination: coherent").opt(),
    bits  <&CopyDirtyPage::dst_sys>  ("dst_sys",   2, 20, 20, "destination: system memory").opt(),
    bits  <&CopyDirtyPage::dst_snoop>("dst_snoop", 2, 22, 22, "destination: snooped").opt(),
    bits  <&CopyDirtyPage::dst_gpa>  ("dst_gpa",   2, 23, 23, "destination: a physical address").opt(),
    bits  <&CopyDirtyPage::src_swap> ("src_swap",  2, 24, 25, "endian swap of the source").opt(),
    bits  <&CopyDirtyPage::src_sys>  ("src_sys",   2, 28, 28, "source: system memory").opt(),
    bits  <&CopyDirtyPage::src_snoop>("src_snoop", 2, 30, 30, "source: snooped").opt(),
    bits  <&CopyDirtyPage::src_gpa>  ("src_gpa",   2, 31, 31, "source: a physical address").opt(),
    bits  <&CopyDirtyPage::dst_policy>("dst_policy", 2, 5, 6, "cache policy of the destination [inferred]").opt().in(k44),
    bits  <&CopyDirtyPage::src_policy>("src_policy", 2, 13, 14, "cache policy of the source [inferred]").opt().in(k44),
    bits  <&CopyDirtyPage::dst_mtype>("dst_mtype", 2, 3, 5, "memory type of the destination").opt().in(since(v5_0)),
    bits  <&CopyDirtyPage::dst_l2_policy>("dst_l2_policy", 2, 6, 7, "cache policy of the destination in L2").opt().in(since(v5_0)),
    bits  <&CopyDirtyPage::dst_llc_policy>("dst_llc_policy", 2, 8, 8, "cache policy of the destination in the last level").opt().in(since(v6_0)),
    bits  <&CopyDirtyPage::src_mtype>("src_mtype", 2, 11, 13, "memory type of the source").opt().in(since(v5_0)),
    bits  <&CopyDirtyPage::src_l2_policy>("src_l2_policy", 2, 14, 15, "cache policy of the source in L2").opt().in(since(v5_0)),
    bits  <&CopyDirtyPage::src_llc_policy>("src_llc_policy", 2, 16, 16, "cache policy of the source in the last level").opt().in(since(v6_0)),
    bits  <&CopyDirtyPage::cpv>      ("cpv",       0, 19, 19, "the cache policies count").opt().in(kCpv));

/// Copies between physical addresses. `more` holds further pairs {src, dst}, 4 dwords per pair. For the kernel only
/// [inferred].
struct CopyPhysical {
  GpuVa src{}, dst{};
  std::uint32_t bytes{};                 ///< 1 to 2^22
  bool tmz{};
  std::uint8_t dst_swap{};
  bool dst_gcc{}, dst_sys{}, dst_snoop{}, dst_gpa{};
  std::uint8_t src_swap{};
  bool src_sys{}, src_snoop{}, src_gpa{}, dst_log{}, src_gcc{};
  std::uint8_t dst_policy{}, src_policy{};
  std::span<const std::uint32_t> more{}; ///< up to 255 pairs of 4 dwords
  std::uint8_t dst_mtype{}, dst_l2_policy{};  ///< from 5.0 on, as all members after them
  bool dst_llc_policy{};
  std::uint8_t src_mtype{}, src_l2_policy{};
  bool src_llc_policy{}, cpv{};
  std::uint32_t dcc{};                   ///< from 7.0 on: an eighth dword, before the addresses
};
template <> inline constexpr auto grammar::layout<CopyPhysical> = packet(
    "copy_physical", op(1, 8), dwords(7, "more", 4), "copy bytes between physical addresses",
    bits   <&CopyPhysical::bytes>    ("bytes",     1,  0, 21, "number of bytes", minus_one).size(),
    addr64 <&CopyPhysical::src>      ("src",       3,         "source").moved(since(v7_0), 4, 0, 63),
    addr64 <&CopyPhysical::dst>      ("dst",       5,         "destination").moved(since(v7_0), 6, 0, 63),
    bits   <&CopyPhysical::tmz>      ("tmz",       0, 18, 18, "trusted memory").opt(),
    bits   <&CopyPhysical::dst_swap> ("dst_swap",  2, 16, 17, "endian swap of the destination").opt().moved(since(v6_0), 2, 17, 18),
    bits   <&CopyPhysical::dst_gcc>  ("dst_gcc",   2, 19, 19, "destination: coherent").opt(),
    bits   <&CopyPhysical::dst_sys>  ("dst_sys",   2, 20, 20, "destination: system memory").opt(),
    bits   <&CopyPhysical::dst_snoop>("dst_snoop", 2, 22, 22, "destination: snooped").opt(),
    bits   <&CopyPhysical::dst_gpa>  ("dst_gpa",   2, 23, 23, "destination: a physical address").opt(),
    bits   <&CopyPhysical::src_swap> ("src_swap",  2, 24, 25, "endian swap of the source").opt(),
    bits   <&CopyPhysical::src_sys>  ("src_sys",   2, 28, 28, "source: system memory").opt(),
    bits   <&CopyPhysical::src_snoop>("src_snoop", 2, 30, 30, "source: snooped").opt(),
    bits   <&CopyPhysical::src_gpa>  ("src_gpa",   2, 31, 31, "source: a physical address").opt(),
    bits   <&CopyPhysical::dst_log>  ("dst_log",   2, 21, 21, "destination: log the write").opt(),
    bits   <&CopyPhysical::src_gcc>  ("src_gcc",   2, 27, 27, "source: coherent").opt(),
    bits   <&CopyPhysical::dst_policy>("dst_policy", 2, 5, 6, "cache policy of the destination [inferred]").opt().in(k44),
    bits   <&CopyPhysical::src_policy>("src_policy", 2, 13, 14, "cache policy of the source [inferred]").opt().in(k44),
    payload<&CopyPhysical::more>     ("more",      1, 24, 31, "further pairs of addresses").opt(),
    bits   <&CopyPhysical::dst_mtype>("dst_mtype", 2, 3, 5, "memory type of the destination").opt().in(since(v5_0)),
    bits   <&CopyPhysical::dst_l2_policy>("dst_l2_policy", 2, 6, 7, "cache policy of the destination in L2").opt().in(since(v5_0)),
    bits   <&CopyPhysical::dst_llc_policy>("dst_llc_policy", 2, 8, 8, "cache policy of the destination in the last level").opt().in(since(v6_0)),
    bits   <&CopyPhysical::src_mtype>("src_mtype", 2, 11, 13, "memory type of the source").opt().in(since(v5_0)),
    bits   <&CopyPhysical::src_l2_policy>("src_l2_policy", 2, 14, 15, "cache policy of the source in L2").opt().in(since(v5_0)),
    bits   <&CopyPhysical::src_llc_policy>("src_llc_policy", 2, 16, 16, "cache policy of the source in the last level").opt().in(since(v6_0)),
    bits   <&CopyPhysical::cpv>      ("cpv",       0, 19, 19, "the cache policies count").opt().in(kCpv),
    bits   <&CopyPhysical::dcc>      ("dcc",       3,  0, 31, "how memory is compressed; 0: it is not").hex().opt().in(since(v7_0)))
  | kernel_only
  | has(since(v7_0), dwords(8, "more", 4));

// clang-format on
}}  // namespace sdma::v0_3
