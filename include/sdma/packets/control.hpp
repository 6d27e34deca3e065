// SPDX-License-Identifier: MIT
#pragma once
// Packets that move no data: padding, indirect buffers, interrupts, conditional execution, registers.
//
//   Nop{.dwords = 16}                                       16 dwords in total, skipped
//   Indirect{.base = GpuVa{0x7f1122334000}, .dwords = 64}   executes the 64 dwords at `base`, then continues
//   Trap{.context = event_id}                               interrupts the host, after a Fence to its mailbox
//
// Ordering: when a TRAP arrives, the kernel reads the event's mailbox word, and ignores the interrupt if that word is
// not set yet. So put a FENCE to the mailbox before the TRAP. A COND_EXEC may read its word before earlier packets have
// completed. The engine may prefetch an indirect buffer: finish writing it before you ring the doorbell, and do not
// change it until you have seen a completion that follows the INDIRECT.
// Errors: check(packet) names the field and the rule. SRBM_WRITE is privileged: on a user queue, the engine refuses it.
// These are plain values; any thread may use them.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Skips `dwords` dwords, itself included: 1 to 16384. Their contents are ignored.
struct Nop { std::uint32_t dwords = 1; };
template <> inline constexpr auto grammar::layout<Nop> = packet(
    "nop", op(0, 0), dwords("dwords"), "skip dwords",
    bits<&Nop::dwords>("dwords", 0, 16, 29, "length of the whole packet", minus_one).opt());

/// Executes the `dwords` dwords at `base` (an indirect buffer), then continues after this packet. The packet must end
/// on a multiple of 8 dwords in the ring, and the buffer must be a multiple of 8 dwords long: stream/rules.hpp checks
/// both.
struct Indirect {
  GpuVa base{};                          ///< 32-byte aligned
  std::uint32_t dwords{};                ///< up to 2^20 - 1
  std::uint8_t vmid{};
  bool priv{};
  GpuVa csa{};                           ///< context save area, 0 for none
};
template <> inline constexpr auto grammar::layout<Indirect> = packet(
    "indirect", op(4, 0), dwords(6), "execute the packets in another buffer",
    addr64<&Indirect::base>  ("base",   1,         "the buffer").aligned(32),
    bits  <&Indirect::dwords>("dwords", 3,  0, 19, "its length"),
    bits  <&Indirect::vmid>  ("vmid",   0, 16, 19, "its address space").opt(),
    bits  <&Indirect::priv>  ("priv",   0, 31, 31, "with kernel privileges [inferred]").opt(),
    addr64<&Indirect::csa>   ("csa",    4,         "context save area").opt());

/// Interrupts the host with `context`. For KFD, `context` is the id of an event whose mailbox an earlier Fence has
/// filled.
struct Trap { std::uint32_t context{}; };
template <> inline constexpr auto grammar::layout<Trap> = packet(
    "trap", op(6, 0), dwords(2), "interrupt the host",
    bits<&Trap::context>("context", 1, 0, 27, "passed to the handler"));

/// A trap without a handler: op 16 on SDMA 4.x. Later engines use that op for another packet, and op 32 for this one.
struct DummyTrap { std::uint32_t context{}; };
template <> inline constexpr auto grammar::layout<DummyTrap> = packet(
    "dummy_trap", op(16, 0), dwords(2), "raise an interrupt that has no handler",
    bits<&DummyTrap::context>("context", 1, 0, 27, "passed to the handler"))
  | has(since(v5_0), op(32, 0));

/// Skips the next `dwords` dwords unless the dword at `addr` equals `reference` [inferred from newer engines].
struct CondExec {
  GpuVa addr{};
  std::uint32_t reference{};
  std::uint16_t dwords{};                ///< up to 16383
  std::uint8_t policy{};
  bool cpv{};                            ///< the policy counts
};
template <> inline constexpr auto grammar::layout<CondExec> = packet(
    "cond_exec", op(9, 0), dwords(5), "skip the next packets unless a dword equals the reference",
    addr64<&CondExec::addr>     ("addr",      1,         "the dword").aligned(4),
    bits  <&CondExec::reference>("reference", 3,  0, 31, "value for which they execute").value(),
    bits  <&CondExec::dwords>   ("dwords",    4,  0, 13, "number of dwords to skip"),
    bits  <&CondExec::policy>   ("policy",    0, 24, 26, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&CondExec::cpv>      ("cpv",       0, 28, 28, "the cache policy counts").opt().in(kCpv));

/// Executes the next `dwords` dwords only on the engines that `devices` selects.
struct PreExec { std::uint16_t dwords{}; std::uint8_t devices{}; };
template <> inline constexpr auto grammar::layout<PreExec> = packet(
    "pre_exec", op(15, 0), dwords(2), "execute the next packets on selected engines only",
    bits<&PreExec::dwords> ("dwords",  1,  0, 13, "dwords that depend on the selection"),
    bits<&PreExec::devices>("devices", 0, 16, 23, "one bit per engine").hex());

/// Writes a register. For the kernel only: on a user queue, the engine blocks it and raises an interrupt that user
/// space never sees.
struct SrbmWrite { std::uint32_t reg{}, value{}; std::uint8_t byte_en = 0xf; std::uint16_t aperture{}; };
template <> inline constexpr auto grammar::layout<SrbmWrite> = packet(
    "srbm_write", op(14, 0), dwords(3), "write a register",
    bits<&SrbmWrite::reg>    ("reg",     1,  0, 17, "dword index of the register").hex(),
    bits<&SrbmWrite::value>  ("value",   2,  0, 31, "stored").value(),
    bits<&SrbmWrite::byte_en>("byte_en", 0, 28, 31, "bytes that are written").hex().opt(),
    bits<&SrbmWrite::aperture>("aperture", 1, 20, 31, "the register's aperture").opt().in(since(v5_0)))
  | kernel_only;

// clang-format on
}}  // namespace sdma::v0_3
