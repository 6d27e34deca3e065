// SPDX-License-Identifier: MIT
#pragma once
// Packets that write page tables. Only the kernel submits them; in a user queue the engine rejects them [inferred].
//
//   PteGenerate{.dst = pte, .flags = 0x73, .init = 0x1000, .increment = 0x1000, .entries = 512};
//   // entry i = flags | (init + i * increment)
//
// They are described here so that a dump of a kernel ring can be read like any other. PteGenerate stores `entries`
// minus one; the other packets store their counts as they are, because no source says otherwise.
// Ordering: as for copies, only a later FENCE or ATOMIC signals that they are complete.
// Errors: check(packet) names the field and the rule. These are plain values; any thread may use them.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Writes `entries` consecutive 64-bit entries. Entry i is `flags | (init + i * increment)`.
struct PteGenerate {
  GpuVa dst{};
  std::uint64_t flags{}, init{}, increment{};
  std::uint32_t entries{};
  std::uint8_t policy{};                 ///< from 6.0 on, as the next one
  bool cpv{};
};
template <> inline constexpr auto grammar::layout<PteGenerate> = packet(
    "pte_generate", op(12, 0), dwords(10), "write page table entries in a progression",
    addr64<&PteGenerate::dst>      ("dst",       1,        "first entry").aligned(8),
    bits  <&PteGenerate::flags>    ("flags",     3, 0, 63, "ORed into each entry").hex(),
    bits  <&PteGenerate::init>     ("init",      5, 0, 63, "initial value").hex(),
    bits  <&PteGenerate::increment>("increment", 7, 0, 63, "difference between consecutive values").hex(),
    bits  <&PteGenerate::entries>  ("entries",   9, 0, 18, "number of entries", minus_one),
    bits  <&PteGenerate::policy>   ("policy",    0, 24, 26, "cache policy").opt().in(since(v6_0)),
    bits  <&PteGenerate::cpv>      ("cpv",       0, 28, 28, "the cache policy counts").opt().in(kCpv))
  | kernel_only;

/// Copies `entries` 64-bit entries. Only the bits that are set in `mask` are copied.
struct PteCopy {
  GpuVa src{}, dst{};
  std::uint64_t mask{};
  std::uint32_t entries{};
  bool pde{};
  std::uint8_t dst_policy{}, src_policy{};
  bool tmz{}, cpv{};                     ///< 5.0 to 7.0, and 6.0 to 7.0
  std::uint8_t mtype{}, scope{};         ///< 7.1, as the next one
  bool snoop{};
};
template <> inline constexpr auto grammar::layout<PteCopy> = packet(
    "pte_copy", op(12, 1), dwords(8), "copy page table entries",
    addr64<&PteCopy::src>    ("src",     1,         "source").aligned(8),
    addr64<&PteCopy::dst>    ("dst",     3,         "destination").aligned(8),
    bits  <&PteCopy::mask>   ("mask",    5,  0, 63, "bits that are copied").hex(),
    bits  <&PteCopy::entries>("entries", 7,  0, 18, "number of entries"),
    bits  <&PteCopy::pde>    ("pde",     0, 31, 31, "directory entries").opt().in(until(v7_0)),
    bits  <&PteCopy::dst_policy>("dst_policy", 7, 22, 24, "cache policy of the destination [inferred]").opt().in(kPolicies),
    bits  <&PteCopy::src_policy>("src_policy", 7, 29, 31, "cache policy of the source [inferred]").opt().in(kPolicies),
    bits  <&PteCopy::tmz>    ("tmz",     0, 18, 18, "trusted memory").opt().in(between(v5_0, v7_0)),
    bits  <&PteCopy::cpv>    ("cpv",     0, 28, 28, "the cache policies count").opt().in(between(v6_0, v7_0)),
    bits  <&PteCopy::mtype>  ("mtype",   0, 16, 17, "memory type").opt().in(only(v7_1)),
    bits  <&PteCopy::scope>  ("scope",   0, 24, 25, "scope of the access").opt().in(only(v7_1)),
    bits  <&PteCopy::snoop>  ("snoop",   0, 22, 22, "snooped").opt().in(only(v7_1)))
  | kernel_only;

/// Changes `entries` consecutive entries: the bits that are set in `mask` get the values that they have in `value`. A
/// driver stack and a debugger have this form. The kernel's headers before 6.0 have no eighth dword; the 4.x one is
/// Generation::v4_4_2_header.
struct PteModify {
  GpuVa addr{};
  std::uint64_t mask{}, value{};
  bool gcc{}, sys{}, snoop{}, gpa{};
  std::uint32_t entries{1};
  std::uint8_t mtype{}, l2_policy{};     ///< from 5.0 on, as all members after them
  bool llc_policy{}, cpv{};
};
template <> inline constexpr auto grammar::layout<PteModify> = packet(
    "pte_modify", op(12, 2), dwords(8), "change bits of page table entries",
    addr64<&PteModify::addr> ("addr",  1,         "the first entry").aligned(8),
    bits  <&PteModify::mask> ("mask",  3,  0, 63, "bits that change").hex(),
    bits  <&PteModify::value>("value", 5,  0, 63, "their new values").hex(),
    bits  <&PteModify::gcc>  ("gcc",   0, 19, 19, "coherent").opt(),
    bits  <&PteModify::sys>  ("sys",   0, 20, 20, "in system memory").opt(),
    bits  <&PteModify::snoop>("snoop", 0, 22, 22, "snooped").opt(),
    bits  <&PteModify::gpa>  ("gpa",   0, 23, 23, "a physical address").opt(),
    bits  <&PteModify::entries>("entries", 7, 0, 31, "number of entries").opt().in(until(v4_4_2) | only(v4_4_5) | since(v6_0)),
    bits  <&PteModify::mtype>("mtype", 0, 16, 18, "memory type").opt().in(since(v5_0)),
    bits  <&PteModify::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2").opt().in(since(v5_0)),
    bits  <&PteModify::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level").opt().in(since(v6_0)),
    bits  <&PteModify::cpv>       ("cpv",        0, 28, 28, "the cache policies count").opt().in(kCpv))
  | kernel_only
  | has(only(v4_4_2_header) | between(v5_0, v5_2), dwords(7));

/// Moves entries within a table, from the last to the first; with `forwards`, from the first to the last.
struct PteCopyBackwards {
  GpuVa src{}, dst{};
  std::uint8_t mask_first{}, mask_last{};
  std::uint32_t blocks{};
  std::uint8_t pte_size{};
  bool forwards{}, pde{};
};
template <> inline constexpr auto grammar::layout<PteCopyBackwards> = packet(
    "pte_copy_backwards", op(12, 3), dwords(7), "move page table entries within a table",
    addr64<&PteCopyBackwards::src>       ("src",        1,         "source").aligned(8),
    addr64<&PteCopyBackwards::dst>       ("dst",        3,         "destination").aligned(8),
    bits  <&PteCopyBackwards::mask_first>("mask_first", 5,  0,  7, "bytes of the first block").hex(),
    bits  <&PteCopyBackwards::mask_last> ("mask_last",  5,  8, 15, "bytes of the last block").hex(),
    bits  <&PteCopyBackwards::blocks>    ("blocks",     6,  0, 16, "blocks of 32 bytes"),
    bits  <&PteCopyBackwards::pte_size>  ("pte_size",   0, 28, 29, "size of an entry").opt(),
    bits  <&PteCopyBackwards::forwards>  ("forwards",   0, 30, 30, "from first to last").opt(),
    bits  <&PteCopyBackwards::pde>       ("pde",        0, 31, 31, "directory entries").opt())
  | kernel_only;

// clang-format on
}}  // namespace sdma::v0_3
