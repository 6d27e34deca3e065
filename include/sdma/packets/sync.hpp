// SPDX-License-Identifier: MIT
#pragma once
// Packets that signal completion: FENCE, ATOMIC, SEMAPHORE.
//
//   Fence{.addr = done, .value = 1}             stores a dword once all earlier packets of the queue are complete
//   Atomic{.addr = left, .value = ~0ull}        adds -1 to a 64-bit word: a counter that many engines may share
//
// Ordering: FENCE and ATOMIC execute once every earlier copy, fill and write of their queue is complete, whichever
// memory their own word is in. Among themselves, they execute in order. They do not hold back later packets.
//
// A fence stores 32 bits. A 64-bit value takes two fences, and a reader may see one without the other: use a 32-bit
// epoch or an atomic instead. Atomics to host memory need a link that completes them (PCIe AtomicOps).
// Errors: check(packet) names the field and the rule. These are plain values; any thread may use them.
#include "sdma/packets/layout.hpp"
#include "sdma/packets/scope.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Stores a dword once all earlier packets of the queue are complete.
struct Fence {
  GpuVa addr{};                          ///< dword aligned
  std::uint32_t value{};
  std::uint8_t l2_policy{};
  bool llc_policy{};
  std::uint8_t mtype{};                  ///< from 5.0 on, as the next four: memory type of the store; runtimes use 3, uncached
  bool gcc{}, sys{}, snoop{}, gpa{};
  bool cpv{};                            ///< in 6.0 and 6.1: the policies count
  Scope scope{};                         ///< from 7.0 on, as the next one; runtimes write sys for 7.1
  std::uint8_t hint{};
};
template <> inline constexpr auto grammar::layout<Fence> = packet(
    "fence", op(5, 0), dwords(4), "store a dword once all earlier packets are complete",
    addr64<&Fence::addr>      ("addr",       1,         "the dword").aligned(4),
    bits  <&Fence::value>     ("value",      3,  0, 31, "stored").value(),
    bits  <&Fence::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2").opt().in(k44 | between(v5_0, v6_1)),
    bits  <&Fence::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level [inferred]").opt().in(k44 | between(v5_2, v6_1)),
    bits  <&Fence::mtype>     ("mtype",      0, 16, 18, "memory type").opt().in(since(v5_0)),
    bits  <&Fence::gcc>       ("gcc",        0, 19, 19, "coherent").opt().in(since(v5_0)),
    bits  <&Fence::sys>       ("sys",        0, 20, 20, "system memory").opt().in(since(v5_0)),
    bits  <&Fence::snoop>     ("snoop",      0, 22, 22, "snooped").opt().in(since(v5_0)),
    bits  <&Fence::gpa>       ("gpa",        0, 23, 23, "a physical address").opt().in(since(v5_0)),
    bits  <&Fence::cpv>       ("cpv",        0, 28, 28, "the cache policies count").opt().in(between(v6_0, v6_1)),
    bits  <&Fence::scope>     ("scope",      0, 24, 25, "scope of the store").opt().in(since(v7_0)),
    bits  <&Fence::hint>      ("hint",       0, 26, 28, "temporal hint").opt().in(since(v7_0)));

// The list of atomic operations: the code of each, and its name in C++ and in text. Each operation has the four forms
// listed below.
#define SDMA_ATOMICS(X, form, offset)                                                                                \
  X(0x01, fcmpswap, form, offset) X(0x02, fmin, form, offset) X(0x03, fmax, form, offset)                            \
  X(0x07, swap, form, offset) X(0x08, cmpswap, form, offset) X(0x09, fcmpswap_flush_denorm, form, offset)            \
  X(0x0a, fmin_flush_denorm, form, offset) X(0x0b, fmax_flush_denorm, form, offset)                                  \
  X(0x0f, add, form, offset) X(0x10, sub, form, offset) X(0x11, smin, form, offset) X(0x12, umin, form, offset)      \
  X(0x13, smax, form, offset) X(0x14, umax, form, offset) X(0x15, and, form, offset) X(0x16, or, form, offset)       \
  X(0x17, xor, form, offset) X(0x18, inc, form, offset) X(0x19, dec, form, offset)
#define SDMA_ATOMICS_IN_ALL_FORMS(X) \
  SDMA_ATOMICS(X, _rtn_32, 0x00) X(0x00, write, _64, 0x20) SDMA_ATOMICS(X, _rtn_64, 0x20) SDMA_ATOMICS(X, _32, 0x40) SDMA_ATOMICS(X, _64, 0x60)
#define SDMA_ENUMERATOR(code, name, form, offset) name##form = code + offset,
#define SDMA_NAME(code, name, form, offset) Name{code + offset, #name #form},

/// The operation of an Atomic: add_rtn_64, cmpswap_32, ... `*_32` changes a word of 32 bits, `*_64` one of 64 bits.
/// `*_rtn_*` is the form in which the GPU caches return the old value. The codes are those of the caches' atomics.
/// Public sDMA code uses only add_rtn_64. write_64 (code 0x20) stores the operand; that it stores 64 bits is
/// [inferred]. With v for the word and s for the operand, inc stores `v >= s ? 0 : v + 1` and dec stores
/// `v == 0 || v > s ? s : v - 1`.
enum class AtomicOp : std::uint8_t { SDMA_ATOMICS_IN_ALL_FORMS(SDMA_ENUMERATOR) };
template <> inline constexpr auto grammar::names<AtomicOp> = std::to_array<Name>({SDMA_ATOMICS_IN_ALL_FORMS(SDMA_NAME)});

#undef SDMA_NAME
#undef SDMA_ENUMERATOR
#undef SDMA_ATOMICS_IN_ALL_FORMS
#undef SDMA_ATOMICS

/// The width of the word that the operation changes, in bytes: 4 or 8.
constexpr std::uint32_t width(AtomicOp op) noexcept {
  return op >= AtomicOp::fcmpswap_64 || (op >= AtomicOp::write_64 && op < AtomicOp::fcmpswap_32) ? 8 : 4;
}

/// One atomic read-modify-write of a word in memory, executed once all earlier packets of the queue are complete.
struct Atomic {
  GpuVa addr{};                          ///< aligned to the width of the operation
  AtomicOp op = AtomicOp::add_rtn_64;
  std::uint64_t value{}, compare{};
  bool loop{};                           ///< cmpswap: retries until it succeeds [inferred]
  std::uint16_t interval{};              ///< engine clocks between two attempts [inferred]
  bool tmz{};
  std::uint8_t policy{};
  bool cpv{};                            ///< the policy counts
  Scope scope{};                         ///< 6.1 and 7.1, as the next one
  std::uint8_t hint{};
};
template <> inline constexpr auto grammar::layout<Atomic> = packet(
    "atomic", op(10), dwords(8), "read, modify and write one word in memory",
    bits  <&Atomic::op>      ("op",       0, 25, 31, "operation"),
    addr64<&Atomic::addr>    ("addr",     1,         "the word"),
    bits  <&Atomic::value>   ("value",    3,  0, 63, "operand").value(),
    bits  <&Atomic::compare> ("compare",  5,  0, 63, "compared by cmpswap").value().opt(),
    bits  <&Atomic::loop>    ("loop",     0, 16, 16, "retry until the compare succeeds").opt(),
    bits  <&Atomic::interval>("interval", 7,  0, 12, "clocks between two attempts").opt(),
    bits  <&Atomic::tmz>     ("tmz",      0, 18, 18, "trusted memory").opt(),
    bits  <&Atomic::policy>  ("policy",   0, 20, 22, "cache policy [inferred]").opt().in(kUnscoped),
    bits  <&Atomic::cpv>     ("cpv",      0, 24, 24, "the cache policy counts").opt().in(only(v6_0) | only(v7_0)),
    bits  <&Atomic::scope>   ("scope",    0, 20, 21, "scope of the access").opt().in(kScopes),
    bits  <&Atomic::hint>    ("hint",     0, 22, 24, "temporal hint").opt().in(kScopes))
  | rule<Atomic>("atomic-alignment", "addr must be aligned to the width of the operation",
        [](const Atomic& p) { return p.addr.value % width(p.op) == 0; });

/// Adds 1 to a word in memory. It ends the command buffers of a driver stack; no header before 6.0 lists it [inferred].
/// Neither the width of the word nor its alignment are public; 8 bytes are assumed.
struct MemIncr {
  GpuVa addr{};
  std::uint8_t l2_policy{};              ///< from 6.0 on, as the next two
  bool llc_policy{}, cpv{};
};
template <> inline constexpr auto grammar::layout<MemIncr> = packet(
    "mem_incr", op(7, 1), dwords(3), "add 1 to a word in memory [inferred]",
    addr64<&MemIncr::addr>      ("addr",       1,         "the word").aligned(8),
    bits  <&MemIncr::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2").opt().in(since(v6_0)),
    bits  <&MemIncr::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level").opt().in(since(v6_0)),
    bits  <&MemIncr::cpv>       ("cpv",        0, 28, 28, "the cache policies count").opt().in(kCpv));

/// Signals a semaphore, or waits for one. No public code uses it on 4.4.2.
struct Semaphore {
  GpuVa addr{};                          ///< 8-byte aligned
  bool write_one{}, signal{}, mailbox{};
};
template <> inline constexpr auto grammar::layout<Semaphore> = packet(
    "semaphore", op(7, 0), dwords(3), "signal a semaphore, or wait for one",
    addr64<&Semaphore::addr>     ("addr",      1,         "the semaphore").aligned(8),
    bits  <&Semaphore::write_one>("write_one", 0, 29, 29, "signal by storing 1").opt(),
    bits  <&Semaphore::signal>   ("signal",    0, 30, 30, "signal, do not wait").opt(),
    bits  <&Semaphore::mailbox>  ("mailbox",   0, 31, 31, "through the mailbox").opt());

// clang-format on
}}  // namespace sdma::v0_3
