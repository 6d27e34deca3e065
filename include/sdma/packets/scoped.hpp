// SPDX-License-Identifier: MIT
#pragma once
// Packets of SDMA 7.1 (gfx1250) that other engines lack, and those that have other fields there: every access has a
// scope and a temporal hint, and a copy can wait before it and signal after it.
//
//   ScopedCopy{.src = a, .dst = b, .bytes = 4096}                       7 dwords: a copy_linear, with both scopes `sys`
//   ScopedCopy{.src = slot, .dst = b, .bytes = 4096, .indirect_src = true}     the source's address is in the slot
//   ScopedCopy{.src = a, .dst = b, .bytes = 64, .wait_addr = go, .signal_addr = left, .wait = true, .signal = true}
//   Multicast{.src = a, .bytes = 4096, .destinations = pairs}           1 to 1024 destinations, low and high dword each
//   Fence64{.addr = done, .value = epoch}     PollMem64{.addr = go, .func = Compare::ge, .reference = epoch}
//
// In this order: header, wait (7 dwords), body, destinations, signal (5 dwords). A block that its flag does not
// announce takes no room: a copy has 7, 12, 14 or 19 dwords.
//
// A catalogue (catalogue.hpp) reads the same dwords: text calls the forms copy_linear, copy_indirect, copy_linear_wait,
// copy_linear_signal and copy_linear_wait_signal, and those of swaps and multicasts alike. The fields are those of a
// runtime's structures of 2026, with which a second transcription of AMD's specification agrees (docs/packets.md). No
// run of this project has tested them. Encode and decode them with the functions of encode.hpp, for
// Generation::v7_1; visit() and the software engine do not know them.
//
// Ordering: a wait holds back its own packet and all later ones; a signal comes after its packet's stores. Copies of a
// queue overlap, so completion is a signal, a fence or an atomic, never a write. Do not poll the word that the packet
// just before signals: a runtime's source says that the engine hangs, because the poll never sees that signal.
// Errors: check(packet, Generation::v7_1) names the field and the rule. These are plain values; any thread may use
// them. A Multicast refers to its destinations and does not own them.
#include "sdma/packets/condition.hpp"
#include "sdma/packets/scope.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Copies `bytes` bytes; waits first if `wait`, and changes a word afterwards if `signal`. With `indirect_src` or
/// `indirect_dst`, that address is the address of 8 bytes that hold the address, one level deep.
struct ScopedCopy {
  GpuVa src{}, dst{};
  std::uint32_t bytes{};                 ///< 1 to 2^30
  GpuVa wait_addr{};                     ///< 8-byte aligned
  std::uint64_t wait_reference{}, wait_mask = ~std::uint64_t{};
  GpuVa signal_addr{};                   ///< 8-byte aligned
  std::uint64_t signal_value = 1;
  Compare wait_func = Compare::eq;       ///< `(word & wait_mask) wait_func wait_reference`, 64 bits
  AtomicOp signal_op = AtomicOp::sub_64; ///< what runtimes use: subtracts 1
  Scope src_scope = Scope::sys, dst_scope = Scope::sys, slot_scope{}, wait_scope = Scope::sys, signal_scope = Scope::sys;
  std::uint8_t src_hint{}, dst_hint{}, slot_hint{}, wait_hint{}, signal_hint{};
  bool indirect_src{}, indirect_dst{}, tmz{}, npd{}, wait{}, signal{};
};
template <> inline constexpr auto grammar::layout<ScopedCopy> = packet(
    "scoped_copy", op(1, 0).is(0, 27, 27, 0), dwords(19).optional(1, 7, "wait").optional(14, 5, "signal"), "wait, copy, signal",
    bits  <&ScopedCopy::bytes>         ("bytes",           8,  0, 29, "number of bytes", minus_one).size(),
    addr64<&ScopedCopy::src>           ("src",            10,         "source"),
    addr64<&ScopedCopy::dst>           ("dst",            12,         "destination"),
    addr64<&ScopedCopy::wait_addr>     ("wait_addr",       2,         "the 64-bit word that is awaited").aligned(8).opt(),
    bits  <&ScopedCopy::wait_func>     ("wait_func",       1,  0,  2, "comparison").opt(),
    bits  <&ScopedCopy::wait_reference>("wait_reference",  4,  0, 63, "right-hand side").value().opt(),
    bits  <&ScopedCopy::wait_mask>     ("wait_mask",       6,  0, 63, "bits to compare").hex().opt(),
    bits  <&ScopedCopy::wait_scope>    ("wait_scope",      1, 18, 19, "scope of the wait").opt(),
    bits  <&ScopedCopy::wait_hint>     ("wait_hint",       1, 20, 22, "temporal hint of the wait").opt(),
    addr64<&ScopedCopy::signal_addr>   ("signal_addr",    15,         "the 64-bit word that is changed").aligned(8).opt(),
    bits  <&ScopedCopy::signal_op>     ("signal_op",      14,  0,  6, "operation").opt(),
    bits  <&ScopedCopy::signal_value>  ("signal_value",   17,  0, 63, "operand").value().opt(),
    bits  <&ScopedCopy::signal_scope>  ("signal_scope",   14, 18, 19, "scope of the signal").opt(),
    bits  <&ScopedCopy::signal_hint>   ("signal_hint",    14, 20, 22, "temporal hint of the signal").opt(),
    bits  <&ScopedCopy::src_scope>     ("src_scope",       9, 26, 27, "scope of the source").opt(),
    bits  <&ScopedCopy::src_hint>      ("src_hint",        9, 28, 30, "temporal hint of the source").opt(),
    bits  <&ScopedCopy::dst_scope>     ("dst_scope",       9, 18, 19, "scope of the destination").opt(),
    bits  <&ScopedCopy::dst_hint>      ("dst_hint",        9, 20, 22, "temporal hint of the destination").opt(),
    bits  <&ScopedCopy::slot_scope>    ("slot_scope",      9, 10, 11, "scope of the slot that holds an address").opt(),
    bits  <&ScopedCopy::slot_hint>     ("slot_hint",       9, 12, 14, "temporal hint of the slot").opt(),
    bits  <&ScopedCopy::indirect_src>  ("indirect_src",    0, 20, 20, "src is the address of 8 bytes that hold the source's address").opt(),
    bits  <&ScopedCopy::indirect_dst>  ("indirect_dst",    0, 21, 21, "dst is the address of 8 bytes that hold the destination's address").opt(),
    bits  <&ScopedCopy::tmz>           ("tmz",             0, 18, 18, "trusted memory").opt(),
    bits  <&ScopedCopy::npd>           ("npd",             0, 28, 28, "npd: no source says what it does; runtimes set it in plain copies").opt(),
    bits  <&ScopedCopy::wait>          ("wait",            0, 30, 30, "wait first").opt(),
    bits  <&ScopedCopy::signal>        ("signal",          0, 31, 31, "signal afterwards").opt())
  | in(only(v7_1));

/// Exchanges the bytes at `a` with those at `b`, both 32-byte aligned; waits first if `wait`, and changes a word
/// afterwards if `signal`.
struct ScopedSwap {
  GpuVa a{}, b{};
  std::uint32_t bytes{};                 ///< 1 to 2^30; a runtime sends at most 0x3fffffe0
  GpuVa wait_addr{};                     ///< 8-byte aligned
  std::uint64_t wait_reference{}, wait_mask = ~std::uint64_t{};
  GpuVa signal_addr{};                   ///< 8-byte aligned
  std::uint64_t signal_value = 1;
  Compare wait_func = Compare::eq;       ///< `(word & wait_mask) wait_func wait_reference`, 64 bits
  AtomicOp signal_op = AtomicOp::sub_64;
  Scope a_scope = Scope::sys, b_scope = Scope::sys, wait_scope = Scope::sys, signal_scope = Scope::sys;
  std::uint8_t a_hint{}, b_hint{}, wait_hint{}, signal_hint{};
  bool tmz{}, wait{}, signal{};
};
template <> inline constexpr auto grammar::layout<ScopedSwap> = packet(
    "scoped_swap", op(1, 9), dwords(19).optional(1, 7, "wait").optional(14, 5, "signal"), "wait, exchange, signal",
    bits  <&ScopedSwap::bytes>         ("bytes",           8,  0, 29, "number of bytes", minus_one).size(),
    addr64<&ScopedSwap::a>             ("a",              10,         "one buffer").aligned(32),
    addr64<&ScopedSwap::b>             ("b",              12,         "the other").aligned(32),
    addr64<&ScopedSwap::wait_addr>     ("wait_addr",       2,         "the 64-bit word that is awaited").aligned(8).opt(),
    bits  <&ScopedSwap::wait_func>     ("wait_func",       1,  0,  2, "comparison").opt(),
    bits  <&ScopedSwap::wait_reference>("wait_reference",  4,  0, 63, "right-hand side").value().opt(),
    bits  <&ScopedSwap::wait_mask>     ("wait_mask",       6,  0, 63, "bits to compare").hex().opt(),
    bits  <&ScopedSwap::wait_scope>    ("wait_scope",      1, 18, 19, "scope of the wait").opt(),
    bits  <&ScopedSwap::wait_hint>     ("wait_hint",       1, 20, 22, "temporal hint of the wait").opt(),
    addr64<&ScopedSwap::signal_addr>   ("signal_addr",    15,         "the 64-bit word that is changed").aligned(8).opt(),
    bits  <&ScopedSwap::signal_op>     ("signal_op",      14,  0,  6, "operation").opt(),
    bits  <&ScopedSwap::signal_value>  ("signal_value",   17,  0, 63, "operand").value().opt(),
    bits  <&ScopedSwap::signal_scope>  ("signal_scope",   14, 18, 19, "scope of the signal").opt(),
    bits  <&ScopedSwap::signal_hint>   ("signal_hint",    14, 20, 22, "temporal hint of the signal").opt(),
    bits  <&ScopedSwap::b_scope>       ("b_scope",         9, 18, 19, "scope of b").opt(),
    bits  <&ScopedSwap::b_hint>        ("b_hint",          9, 20, 22, "temporal hint of b").opt(),
    bits  <&ScopedSwap::a_scope>       ("a_scope",         9, 26, 27, "scope of a").opt(),
    bits  <&ScopedSwap::a_hint>        ("a_hint",          9, 28, 30, "temporal hint of a").opt(),
    bits  <&ScopedSwap::tmz>           ("tmz",             0, 18, 18, "trusted memory").opt(),
    bits  <&ScopedSwap::wait>          ("wait",            0, 30, 30, "wait first").opt(),
    bits  <&ScopedSwap::signal>        ("signal",          0, 31, 31, "signal afterwards").opt())
  | in(only(v7_1));

/// Reads `src` once and writes it to each destination; waits first if `wait`, and changes a word afterwards if
/// `signal`.
struct Multicast {
  GpuVa src{};
  std::uint32_t bytes{};                 ///< 1 to 2^30
  std::span<const std::uint32_t> destinations{};  ///< 1 to 1024 addresses, the low dword of each before its high one
  GpuVa wait_addr{};                     ///< 8-byte aligned
  std::uint64_t wait_reference{}, wait_mask = ~std::uint64_t{};
  GpuVa signal_addr{};                   ///< 8-byte aligned
  std::uint64_t signal_value = 1;
  Compare wait_func = Compare::eq;       ///< `(word & wait_mask) wait_func wait_reference`, 64 bits
  AtomicOp signal_op = AtomicOp::sub_64;
  Scope src_scope = Scope::sys, dst_scope = Scope::sys, wait_scope = Scope::sys, signal_scope = Scope::sys;
  std::uint8_t src_hint{}, dst_hint{}, wait_hint{}, signal_hint{};
  bool tmz{}, npd{}, wait{}, signal{};
};
template <> inline constexpr auto grammar::layout<Multicast> = packet(
    "multicast", op(1, 10), dwords(17, "destinations", 2).optional(1, 7, "wait").optional(12, 5, "signal").tail(5),
    "wait, copy to several destinations, signal",
    bits   <&Multicast::bytes>         ("bytes",           8,  0, 29, "number of bytes", minus_one).size(),
    addr64 <&Multicast::src>           ("src",            10,         "source"),
    payload<&Multicast::destinations>  ("destinations",    9,  0,  9, "their addresses, low dwords first", minus_one),
    addr64 <&Multicast::wait_addr>     ("wait_addr",       2,         "the 64-bit word that is awaited").aligned(8).opt(),
    bits   <&Multicast::wait_func>     ("wait_func",       1,  0,  2, "comparison").opt(),
    bits   <&Multicast::wait_reference>("wait_reference",  4,  0, 63, "right-hand side").value().opt(),
    bits   <&Multicast::wait_mask>     ("wait_mask",       6,  0, 63, "bits to compare").hex().opt(),
    bits   <&Multicast::wait_scope>    ("wait_scope",      1, 18, 19, "scope of the wait").opt(),
    bits   <&Multicast::wait_hint>     ("wait_hint",       1, 20, 22, "temporal hint of the wait").opt(),
    addr64 <&Multicast::signal_addr>   ("signal_addr",    13,         "the 64-bit word that is changed").aligned(8).opt(),
    bits   <&Multicast::signal_op>     ("signal_op",      12,  0,  6, "operation").opt(),
    bits   <&Multicast::signal_value>  ("signal_value",   15,  0, 63, "operand").value().opt(),
    bits   <&Multicast::signal_scope>  ("signal_scope",   12, 18, 19, "scope of the signal").opt(),
    bits   <&Multicast::signal_hint>   ("signal_hint",    12, 20, 22, "temporal hint of the signal").opt(),
    bits   <&Multicast::src_scope>     ("src_scope",       9, 26, 27, "scope of the source").opt(),
    bits   <&Multicast::src_hint>      ("src_hint",        9, 28, 30, "temporal hint of the source").opt(),
    bits   <&Multicast::dst_scope>     ("dst_scope",       9, 18, 19, "scope of the destinations").opt(),
    bits   <&Multicast::dst_hint>      ("dst_hint",        9, 20, 22, "temporal hint of the destinations").opt(),
    bits   <&Multicast::tmz>           ("tmz",             0, 18, 18, "trusted memory").opt(),
    bits   <&Multicast::npd>           ("npd",             0, 28, 28, "npd: no source says what it does").opt(),
    bits   <&Multicast::wait>          ("wait",            0, 30, 30, "wait first").opt(),
    bits   <&Multicast::signal>        ("signal",          0, 31, 31, "signal afterwards").opt())
  | in(only(v7_1));

/// Stores 64 bits once all earlier packets of the queue are complete.
struct Fence64 {
  GpuVa addr{};                          ///< 8-byte aligned
  std::uint64_t value{};
  std::uint8_t mtype = 3;                ///< memory type; runtimes use 3
  bool sys{}, snoop{}, gpa{};            ///< sys: the word is in the host's memory; runtimes set it
  Scope scope = Scope::sys;
  std::uint8_t hint{};
};
template <> inline constexpr auto grammar::layout<Fence64> = packet(
    "fence_64", op(5, 2), dwords(5), "store 64 bits once all earlier packets are complete",
    addr64<&Fence64::addr> ("addr",  1,         "the 64-bit word").aligned(8),
    bits  <&Fence64::value>("value", 3,  0, 63, "stored").value(),
    bits  <&Fence64::mtype>("mtype", 0, 16, 17, "memory type"),
    bits  <&Fence64::sys>  ("sys",   0, 20, 20, "system memory").opt(),
    bits  <&Fence64::snoop>("snoop", 0, 22, 22, "snooped").opt(),
    bits  <&Fence64::gpa>  ("gpa",   0, 23, 23, "a physical address").opt(),
    bits  <&Fence64::scope>("scope", 0, 24, 25, "scope of the store"),
    bits  <&Fence64::hint> ("hint",  0, 26, 28, "temporal hint").opt())
  | in(only(v7_1));

/// Holds the queue until `(*addr & mask) func reference` is true, 64 bits.
struct PollMem64 {
  GpuVa addr{};                          ///< 8-byte aligned
  Compare func = Compare::eq;
  std::uint64_t reference{}, mask = ~std::uint64_t{};
  std::uint8_t retry{};                  ///< number of reads; 0: forever, unlike PollMem
  std::uint8_t mtype{};
  bool sys{}, snoop{}, gpa{};
  std::uint8_t policy{};
  Scope scope = Scope::sys;
};
template <> inline constexpr auto grammar::layout<PollMem64> = packet(
    "poll_mem_64", op(8, 5), dwords(8), "wait until 64 bits in memory satisfy a comparison",
    addr64<&PollMem64::addr>     ("addr",      1,         "the 64-bit word").aligned(8),
    bits  <&PollMem64::func>     ("func",      0, 28, 30, "comparison"),
    bits  <&PollMem64::reference>("reference", 3,  0, 63, "right-hand side").value(),
    bits  <&PollMem64::mask>     ("mask",      5,  0, 63, "bits to compare").hex().opt(),
    bits  <&PollMem64::retry>    ("retry",     7, 16, 23, "number of reads before the poll expires; 0: forever").opt(),
    bits  <&PollMem64::mtype>    ("mtype",     0, 16, 17, "memory type").opt(),
    bits  <&PollMem64::sys>      ("sys",       0, 20, 20, "system memory").opt(),
    bits  <&PollMem64::snoop>    ("snoop",     0, 22, 22, "snooped").opt(),
    bits  <&PollMem64::gpa>      ("gpa",       0, 23, 23, "a physical address").opt(),
    bits  <&PollMem64::policy>   ("policy",    0, 24, 26, "cache policy").opt(),
    bits  <&PollMem64::scope>    ("scope",     7, 28, 29, "scope of the reads"))
  | in(only(v7_1));

/// A Fill with the fields of 7.1. If a length is not a multiple of the unit, bytes_written(Fill) says what it means.
struct ScopedFill {
  GpuVa dst{};                           ///< aligned to the unit
  std::uint32_t data{}, bytes{};         ///< 1 to 2^30 bytes
  FillUnit unit = FillUnit::dword;
  Scope scope = Scope::sys;
  std::uint8_t hint{}, mtype{};
  bool sys{}, snoop{}, gpa{}, npd{};     ///< npd: runtimes set it
};
template <> inline constexpr auto grammar::layout<ScopedFill> = packet(
    "scoped_fill", op(11, 0), dwords(5), "fill a buffer with a repeated value",
    addr64<&ScopedFill::dst>  ("dst",   1,         "destination"),
    bits  <&ScopedFill::data> ("data",  3,  0, 31, "the value").hex(),
    bits  <&ScopedFill::bytes>("bytes", 4,  0, 29, "number of bytes", minus_one).size(),
    bits  <&ScopedFill::unit> ("unit",  0, 30, 31, "the unit that is repeated"),
    bits  <&ScopedFill::scope>("scope", 0, 24, 25, "scope of the stores").opt(),
    bits  <&ScopedFill::hint> ("hint",  0, 26, 28, "temporal hint").opt(),
    bits  <&ScopedFill::mtype>("mtype", 0, 16, 17, "memory type; to the kernel's header, an endian swap").opt(),
    bits  <&ScopedFill::sys>  ("sys",   0, 20, 20, "system memory").opt(),
    bits  <&ScopedFill::snoop>("snoop", 0, 22, 22, "snooped").opt(),
    bits  <&ScopedFill::gpa>  ("gpa",   0, 23, 23, "a physical address").opt(),
    bits  <&ScopedFill::npd>  ("npd",   0, 29, 29, "npd: no source says what it does").opt())
  | in(only(v7_1))
  | rule<ScopedFill>("fill-alignment", "dst must be aligned to the unit",
        [](const ScopedFill& p) { return p.dst.value % (std::uint64_t{1} << (static_cast<unsigned>(p.unit) & 3)) == 0; });

/// A CopySubwindow with the fields of 7.1: sizes and pitches of 16 bits, 2^14 slices, slice pitches of 32 bits.
struct ScopedSubwindow {
  GpuVa src{}, dst{};                    ///< dword aligned
  std::uint8_t element_log2{};           ///< 0 to 4: 1 to 16 bytes
  std::uint32_t src_pitch{1}, dst_pitch{1};
  std::uint64_t src_slice{1}, dst_slice{1};
  std::uint32_t x{1}, y{1}, z{1};
  std::uint16_t src_x{}, src_y{}, src_z{}, dst_x{}, dst_y{}, dst_z{};
  Scope src_scope = Scope::sys, dst_scope = Scope::sys;
  std::uint8_t src_hint{}, dst_hint{};
  bool tmz{}, npd{};                     ///< npd: runtimes set it
};
template <> inline constexpr auto grammar::layout<ScopedSubwindow> = packet(
    "scoped_subwindow", op(1, 4), dwords(13), "copy a box between two pitched volumes",
    bits  <&ScopedSubwindow::element_log2>("element_log2", 0, 29, 31, "log2 of the bytes of an element").up_to(4),
    addr64<&ScopedSubwindow::src>         ("src",          1,         "source volume").aligned(4),
    bits  <&ScopedSubwindow::src_pitch>   ("src_pitch",    4, 16, 31, "elements per row of the source", minus_one),
    addr64<&ScopedSubwindow::dst>         ("dst",          6,         "destination volume").aligned(4),
    bits  <&ScopedSubwindow::dst_pitch>   ("dst_pitch",    9, 16, 31, "elements per row of the destination", minus_one),
    bits  <&ScopedSubwindow::x>           ("x",           11,  0, 15, "elements of the box in x", minus_one),
    bits  <&ScopedSubwindow::src_x>       ("src_x",        3,  0, 15, "start in the source").opt(),
    bits  <&ScopedSubwindow::src_y>       ("src_y",        3, 16, 31, "first row in the source").opt(),
    bits  <&ScopedSubwindow::src_z>       ("src_z",        4,  0, 13, "first slice in the source").opt(),
    bits  <&ScopedSubwindow::src_slice>   ("src_slice",    5,  0, 31, "elements per slice of the source", minus_one).opt(),
    bits  <&ScopedSubwindow::dst_x>       ("dst_x",        8,  0, 15, "start in the destination").opt(),
    bits  <&ScopedSubwindow::dst_y>       ("dst_y",        8, 16, 31, "first row in the destination").opt(),
    bits  <&ScopedSubwindow::dst_z>       ("dst_z",        9,  0, 13, "first slice in the destination").opt(),
    bits  <&ScopedSubwindow::dst_slice>   ("dst_slice",   10,  0, 31, "elements per slice of the destination", minus_one).opt(),
    bits  <&ScopedSubwindow::y>           ("y",           11, 16, 31, "rows of the box", minus_one).opt(),
    bits  <&ScopedSubwindow::z>           ("z",           12,  0, 13, "slices of the box", minus_one).opt(),
    bits  <&ScopedSubwindow::dst_scope>   ("dst_scope",   12, 18, 19, "scope of the destination").opt(),
    bits  <&ScopedSubwindow::dst_hint>    ("dst_hint",    12, 20, 22, "temporal hint of the destination").opt(),
    bits  <&ScopedSubwindow::src_scope>   ("src_scope",   12, 26, 27, "scope of the source").opt(),
    bits  <&ScopedSubwindow::src_hint>    ("src_hint",    12, 28, 30, "temporal hint of the source").opt(),
    bits  <&ScopedSubwindow::tmz>         ("tmz",          0, 18, 18, "trusted memory").opt(),
    bits  <&ScopedSubwindow::npd>         ("npd",          0, 28, 28, "npd: no source says what it does").opt())
  | in(only(v7_1))
  | rule<ScopedSubwindow>("subwindow-pitch", "pitches must be multiples of 4 bytes, and so must slices if the box has several",
        [](const ScopedSubwindow& p) {
          const auto whole = [&](std::uint64_t elements) { return (elements << (p.element_log2 & 7)) % 4 == 0; };
          return (p.y == 1 || (whole(p.src_pitch) && whole(p.dst_pitch)))
              && (p.z == 1 || (whole(p.src_slice) && whole(p.dst_slice)));
        });

/// A Timestamp with the scope of 7.1.
struct ScopedTimestamp {
  GpuVa addr{};                          ///< 8-byte aligned
  Scope scope = Scope::sys;
  std::uint8_t hint{};
};
template <> inline constexpr auto grammar::layout<ScopedTimestamp> = packet(
    "scoped_timestamp", op(13, 2), dwords(3), "store the global clock",
    addr64<&ScopedTimestamp::addr> ("addr",  1,         "the 64-bit word").aligned(8),
    bits  <&ScopedTimestamp::scope>("scope", 0, 24, 25, "scope of the store").opt(),
    bits  <&ScopedTimestamp::hint> ("hint",  0, 26, 28, "temporal hint").opt())
  | in(only(v7_1));

// clang-format on
}}  // namespace sdma::v0_3
