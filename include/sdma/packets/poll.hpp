// SPDX-License-Identifier: MIT
#pragma once
// Packets that wait for a word or inspect memory: the POLL family, and the HDP (host data path) flush.
//
//   PollMem{.addr = flag, .func = Compare::ge, .reference = epoch}     later packets wait until (*flag & mask) >= epoch
//   HdpFlush{}                                                         later packets see what the host wrote to VRAM
//
// A poll compares 32 bits, unsigned. To wait for a 64-bit word, poll its high half and then its low half. This is sound
// only if the word is monotone.
//
// Ordering: a poll holds back all later packets of its queue until it is satisfied, and does not wait for earlier ones.
// For a full barrier within one queue, use Fence(w, n) and then PollMem(w == n), with a fresh n each time.
// Errors: check(packet) names the field and the rule. User space is not notified when a finite poll expires. So let
// polls retry forever, and put the deadline on the host's wait. These are plain values; any thread may use them.
#include "sdma/packets/condition.hpp"
#include "sdma/packets/layout.hpp"
#include "sdma/packets/scope.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Holds the queue until `(*addr & mask) func reference` is true.
struct PollMem {
  GpuVa addr{};                          ///< dword aligned
  Compare func = Compare::eq;
  std::uint32_t reference{}, mask = 0xffffffff;
  std::uint16_t interval = 4;            ///< engine clocks between two reads of the word [inferred]
  std::uint16_t retry = 0xfff;           ///< 4095: forever
  std::uint8_t policy{};
  bool hdp{};                            ///< flush the host data path first; runtimes leave it 0
  bool cpv{};                            ///< the policy counts
  Scope scope{};                         ///< 6.1 and 7.1
};
template <> inline constexpr auto grammar::layout<PollMem> = packet(
    "poll_mem", op(8, 0).is(0, 31, 31, 1), dwords(6), "wait until a dword in memory satisfies a comparison",
    addr64<&PollMem::addr>     ("addr",      1,         "the dword").aligned(4),
    bits  <&PollMem::func>     ("func",      0, 28, 30, "comparison"),
    bits  <&PollMem::reference>("reference", 3,  0, 31, "right-hand side").value(),
    bits  <&PollMem::mask>     ("mask",      4,  0, 31, "bits to compare").hex().opt(),
    bits  <&PollMem::interval> ("interval",  5,  0, 15, "clocks between two reads").opt(),
    bits  <&PollMem::retry>    ("retry",     5, 16, 27, "number of reads before the poll expires").named(kRetryNames).opt(),
    bits  <&PollMem::policy>   ("policy",    0, 20, 22, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&PollMem::hdp>      ("hdp",       0, 26, 26, "flush the host data path").opt(),
    bits  <&PollMem::cpv>      ("cpv",       0, 24, 24, "the cache policy counts").opt().in(kCpv),
    bits  <&PollMem::scope>    ("scope",     5, 28, 29, "scope of the reads").opt().in(kScopes));

/// Flushes the host data path (HDP) from a user queue. Its 6 dwords are fixed. They are also a PollReg with particular
/// values, so `identify` tries HdpFlush first.
struct HdpFlush {};
template <> inline constexpr auto grammar::layout<HdpFlush> = packet<HdpFlush>(
    "hdp_flush", op(8, 0).is(0, 16, 31, 0).is(1, 0, 31, 0).is(2, 0, 31, 0x80000000)
                         .is(3, 0, 31, 0).is(4, 0, 31, 0).is(5, 0, 31, 0),
    dwords(6), "flush the host data path")
  | in(k4 | since(v5_2));

/// Holds the queue until `(value of reg & mask) func reference` is true. With `hdp`, it writes the register `request`
/// first; the kernel's HDP flushes have this form.
struct PollReg {
  std::uint32_t reg{}, request{};        ///< byte offsets
  Compare func = Compare::eq;
  std::uint32_t reference{}, mask = 0xffffffff;
  std::uint16_t interval = 10, retry = 0xfff;
  bool hdp{};
  std::uint8_t policy{};
  bool cpv{};                            ///< the policy counts
};
template <> inline constexpr auto grammar::layout<PollReg> = packet(
    "poll_reg", op(8, 0).is(0, 31, 31, 0), dwords(6), "wait until a register satisfies a comparison",
    bits<&PollReg::reg>      ("reg",       1,  0, 31, "the register, in bytes").hex().aligned(4),
    bits<&PollReg::func>     ("func",      0, 28, 30, "comparison"),
    bits<&PollReg::reference>("reference", 3,  0, 31, "right-hand side").value(),
    bits<&PollReg::request>  ("request",   2,  0, 31, "the flush request register, in bytes").hex().opt(),
    bits<&PollReg::mask>     ("mask",      4,  0, 31, "bits to compare").hex().opt(),
    bits<&PollReg::interval> ("interval",  5,  0, 15, "clocks between two reads").opt(),
    bits<&PollReg::retry>    ("retry",     5, 16, 27, "number of reads before the poll expires").named(kRetryNames).opt(),
    bits<&PollReg::hdp>      ("hdp",       0, 26, 26, "flush the host data path").opt(),
    bits<&PollReg::policy>   ("policy",    0, 20, 22, "cache policy [inferred]").opt().in(kPolicies),
    bits<&PollReg::cpv>      ("cpv",       0, 24, 24, "the cache policy counts").opt().in(kCpv));

/// Stores the value of a register to memory. In 7.0 the packet has a fifth dword, whose meaning is not public.
struct PollRegToMem { std::uint32_t reg{}; GpuVa dst{}; std::uint8_t policy{}; bool cpv{}; };
template <> inline constexpr auto grammar::layout<PollRegToMem> = packet(
    "poll_reg_to_mem", op(8, 1), dwords(4), "store a register",
    bits  <&PollRegToMem::reg>   ("reg",    1,  0, 31, "the register, in bytes").hex().aligned(4),
    addr64<&PollRegToMem::dst>   ("dst",    2,         "the dword").aligned(4),
    bits  <&PollRegToMem::policy>("policy", 0, 24, 26, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&PollRegToMem::cpv>   ("cpv",    0, 28, 28, "the cache policy counts").opt().in(kCpv))
  | has(only(v7_0), dwords(5));

/// Stores the dirty bits of `pages` pages, starting at `page`.
struct PollDirtyBits { GpuVa dst{}; std::uint32_t page{}, pages{}; std::uint8_t ea{}, policy{}; bool cpv{}; };
template <> inline constexpr auto grammar::layout<PollDirtyBits> = packet(
    "poll_dirty_bits", op(8, 2), dwords(5), "store the dirty bits of pages",
    addr64<&PollDirtyBits::dst>   ("dst",    1,         "destination").aligned(4),
    bits  <&PollDirtyBits::page>  ("page",   3,  0, 31, "first page, as an address of bits").hex().aligned(16),
    bits  <&PollDirtyBits::pages> ("pages",  4,  0, 31, "number of pages"),
    bits  <&PollDirtyBits::ea>    ("ea",     0, 16, 17, "efficiency arbiter").opt(),
    bits  <&PollDirtyBits::policy>("policy", 0, 24, 26, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&PollDirtyBits::cpv>   ("cpv",    0, 28, 28, "the cache policy counts").opt().in(kCpv));

/// Compares two ranges of memory, or with `mode` one range with a pattern, and records the outcome.
struct PollVerify {
  GpuVa a{}, a_end{}, b{}, b_end{}, record{};
  std::uint32_t pattern{};
  bool mode{};
  std::uint8_t policy{};
  bool cpv{};                            ///< the policy counts
};
template <> inline constexpr auto grammar::layout<PollVerify> = packet(
    "poll_verify", op(8, 3), dwords(13), "compare memory and record the outcome",
    bits  <&PollVerify::pattern>("pattern",  1,  0, 31, "dword to compare with").hex(),
    addr64<&PollVerify::a>      ("a",        2,         "first range").aligned(4),
    addr64<&PollVerify::a_end>  ("a_end",    4,         "its end").aligned(4),
    addr64<&PollVerify::b>      ("b",        6,         "second range").aligned(4),
    addr64<&PollVerify::b_end>  ("b_end",    8,         "its end").aligned(4),
    addr64<&PollVerify::record> ("record",  10,         "where the outcome goes").aligned(4),
    bits  <&PollVerify::mode>   ("mode",     0, 31, 31, "compare with the pattern [inferred]").opt(),
    bits  <&PollVerify::policy> ("policy",   0, 24, 26, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&PollVerify::cpv>    ("cpv",      0, 28, 28, "the cache policy counts").opt().in(kCpv));

// clang-format on
}}  // namespace sdma::v0_3
