#pragma once
// Packets that signal completion: FENCE, ATOMIC, SEMAPHORE.
//
//   Fence{.addr = done, .value = 1}             stores a dword once all earlier packets of the queue are done
//   Atomic{.addr = left, .value = ~0ull}        adds -1 to a 64-bit word: a counter that many engines may share
//
// Ordering: FENCE and ATOMIC execute once every earlier copy, fill and write of their queue has been performed,
// wherever their own word lies, and in order among themselves. They do not hold back later packets.
//
// A fence stores 32 bits. A 64-bit value takes two fences, and a reader may see one without the other: use a 32-bit
// epoch or an atomic instead. Atomics to host memory need a link that completes them (PCIe AtomicOps).
// Errors: check(packet) names the field and the rule. Plain values: any thread.
#include "sdma/packets/layout.hpp"

namespace sdma {
inline namespace v0 {
// clang-format off

/// Stores a dword when everything earlier in the queue is done.
struct Fence {
  GpuVa addr{};                          ///< dword aligned
  std::uint32_t value{};
  std::uint8_t l2_policy{};
  bool llc_policy{};
};
template <> inline constexpr auto layout<Fence> = packet(
    "fence", op(5, 0), dwords(4), "store a dword when all earlier packets are done",
    addr64<&Fence::addr>      ("addr",       1,         "the dword").aligned(4),
    bits  <&Fence::value>     ("value",      3,  0, 31, "stored").value(),
    bits  <&Fence::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2 [inferred]").opt(),
    bits  <&Fence::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level [inferred]").opt());

/// What an Atomic does with the word v, its operand s and its compare value c. Only add_rtn_64 is used in public sDMA code;
/// the others follow from the caches' operation codes [inferred]. inc: v >= s ? 0 : v + 1; dec: v == 0 || v > s ? s : v - 1.
enum class AtomicOp : std::uint8_t {
  fcmpswap_rtn_32 = 0x01, fmin_rtn_32 = 0x02, fmax_rtn_32 = 0x03, swap_rtn_32 = 0x07, cmpswap_rtn_32 = 0x08,
  fcmpswap_flush_denorm_rtn_32 = 0x09, fmin_flush_denorm_rtn_32 = 0x0a, fmax_flush_denorm_rtn_32 = 0x0b,
  add_rtn_32 = 0x0f, sub_rtn_32 = 0x10, smin_rtn_32 = 0x11, umin_rtn_32 = 0x12, smax_rtn_32 = 0x13, umax_rtn_32 = 0x14,
  and_rtn_32 = 0x15, or_rtn_32 = 0x16, xor_rtn_32 = 0x17, inc_rtn_32 = 0x18, dec_rtn_32 = 0x19, fcmpswap_rtn_64 = 0x21,
  fmin_rtn_64 = 0x22, fmax_rtn_64 = 0x23, swap_rtn_64 = 0x27, cmpswap_rtn_64 = 0x28,
  fcmpswap_flush_denorm_rtn_64 = 0x29, fmin_flush_denorm_rtn_64 = 0x2a, fmax_flush_denorm_rtn_64 = 0x2b,
  add_rtn_64 = 0x2f, sub_rtn_64 = 0x30, smin_rtn_64 = 0x31, umin_rtn_64 = 0x32, smax_rtn_64 = 0x33, umax_rtn_64 = 0x34,
  and_rtn_64 = 0x35, or_rtn_64 = 0x36, xor_rtn_64 = 0x37, inc_rtn_64 = 0x38, dec_rtn_64 = 0x39, fcmpswap_32 = 0x41,
  fmin_32 = 0x42, fmax_32 = 0x43, swap_32 = 0x47, cmpswap_32 = 0x48, fcmpswap_flush_denorm_32 = 0x49,
  fmin_flush_denorm_32 = 0x4a, fmax_flush_denorm_32 = 0x4b, add_32 = 0x4f, sub_32 = 0x50, smin_32 = 0x51,
  umin_32 = 0x52, smax_32 = 0x53, umax_32 = 0x54, and_32 = 0x55, or_32 = 0x56, xor_32 = 0x57, inc_32 = 0x58,
  dec_32 = 0x59, fcmpswap_64 = 0x61, fmin_64 = 0x62, fmax_64 = 0x63, swap_64 = 0x67, cmpswap_64 = 0x68,
  fcmpswap_flush_denorm_64 = 0x69, fmin_flush_denorm_64 = 0x6a, fmax_flush_denorm_64 = 0x6b, add_64 = 0x6f,
  sub_64 = 0x70, smin_64 = 0x71, umin_64 = 0x72, smax_64 = 0x73, umax_64 = 0x74, and_64 = 0x75, or_64 = 0x76,
  xor_64 = 0x77, inc_64 = 0x78, dec_64 = 0x79,
};
template <> inline constexpr auto names<AtomicOp> = std::to_array<Name>({
    {0x01, "fcmpswap_rtn_32"}, {0x02, "fmin_rtn_32"}, {0x03, "fmax_rtn_32"}, {0x07, "swap_rtn_32"},
    {0x08, "cmpswap_rtn_32"}, {0x09, "fcmpswap_flush_denorm_rtn_32"}, {0x0a, "fmin_flush_denorm_rtn_32"},
    {0x0b, "fmax_flush_denorm_rtn_32"}, {0x0f, "add_rtn_32"}, {0x10, "sub_rtn_32"}, {0x11, "smin_rtn_32"},
    {0x12, "umin_rtn_32"}, {0x13, "smax_rtn_32"}, {0x14, "umax_rtn_32"}, {0x15, "and_rtn_32"}, {0x16, "or_rtn_32"},
    {0x17, "xor_rtn_32"}, {0x18, "inc_rtn_32"}, {0x19, "dec_rtn_32"}, {0x21, "fcmpswap_rtn_64"}, {0x22, "fmin_rtn_64"},
    {0x23, "fmax_rtn_64"}, {0x27, "swap_rtn_64"}, {0x28, "cmpswap_rtn_64"}, {0x29, "fcmpswap_flush_denorm_rtn_64"},
    {0x2a, "fmin_flush_denorm_rtn_64"}, {0x2b, "fmax_flush_denorm_rtn_64"}, {0x2f, "add_rtn_64"}, {0x30, "sub_rtn_64"},
    {0x31, "smin_rtn_64"}, {0x32, "umin_rtn_64"}, {0x33, "smax_rtn_64"}, {0x34, "umax_rtn_64"}, {0x35, "and_rtn_64"},
    {0x36, "or_rtn_64"}, {0x37, "xor_rtn_64"}, {0x38, "inc_rtn_64"}, {0x39, "dec_rtn_64"}, {0x41, "fcmpswap_32"},
    {0x42, "fmin_32"}, {0x43, "fmax_32"}, {0x47, "swap_32"}, {0x48, "cmpswap_32"}, {0x49, "fcmpswap_flush_denorm_32"},
    {0x4a, "fmin_flush_denorm_32"}, {0x4b, "fmax_flush_denorm_32"}, {0x4f, "add_32"}, {0x50, "sub_32"},
    {0x51, "smin_32"}, {0x52, "umin_32"}, {0x53, "smax_32"}, {0x54, "umax_32"}, {0x55, "and_32"}, {0x56, "or_32"},
    {0x57, "xor_32"}, {0x58, "inc_32"}, {0x59, "dec_32"}, {0x61, "fcmpswap_64"}, {0x62, "fmin_64"}, {0x63, "fmax_64"},
    {0x67, "swap_64"}, {0x68, "cmpswap_64"}, {0x69, "fcmpswap_flush_denorm_64"}, {0x6a, "fmin_flush_denorm_64"},
    {0x6b, "fmax_flush_denorm_64"}, {0x6f, "add_64"}, {0x70, "sub_64"}, {0x71, "smin_64"}, {0x72, "umin_64"},
    {0x73, "smax_64"}, {0x74, "umax_64"}, {0x75, "and_64"}, {0x76, "or_64"}, {0x77, "xor_64"}, {0x78, "inc_64"},
    {0x79, "dec_64"},
});

/// Bytes of memory that the operation changes: 4 or 8.
constexpr std::uint32_t width(AtomicOp op) noexcept {
  return op >= AtomicOp::fcmpswap_64 || (op >= AtomicOp::fcmpswap_rtn_64 && op < AtomicOp::fcmpswap_32) ? 8 : 4;
}

/// One atomic read-modify-write of a word in memory, executed once everything earlier in the queue is done.
struct Atomic {
  GpuVa addr{};                          ///< aligned to the width of the operation
  AtomicOp op = AtomicOp::add_rtn_64;
  std::uint64_t value{}, compare{};
  bool loop{};                           ///< cmpswap: retries until it succeeds [inferred]
  std::uint16_t interval{};              ///< between two attempts; engine clocks [inferred]
  bool tmz{};
  std::uint8_t policy{};
};
template <> inline constexpr auto layout<Atomic> = packet(
    "atomic", op(10), dwords(8), "read, modify and write one word in memory",
    bits  <&Atomic::op>      ("op",       0, 25, 31, "operation"),
    addr64<&Atomic::addr>    ("addr",     1,         "the word"),
    bits  <&Atomic::value>   ("value",    3,  0, 63, "operand").value(),
    bits  <&Atomic::compare> ("compare",  5,  0, 63, "compared by cmpswap").value().opt(),
    bits  <&Atomic::loop>    ("loop",     0, 16, 16, "again until the compare succeeds").opt(),
    bits  <&Atomic::interval>("interval", 7,  0, 12, "between two tries").opt(),
    bits  <&Atomic::tmz>     ("tmz",      0, 18, 18, "trusted memory").opt(),
    bits  <&Atomic::policy>  ("policy",   0, 20, 22, "cache policy [inferred]").opt())
  | rule<Atomic>("atomic-alignment", "addr must be aligned to the width of the operation",
        [](const Atomic& p) { return p.addr.value % width(p.op) == 0; });

/// Signals a semaphore, or waits for one. No public code uses it on 4.4.2.
struct Semaphore {
  GpuVa addr{};                          ///< 8-byte aligned
  bool write_one{}, signal{}, mailbox{};
};
template <> inline constexpr auto layout<Semaphore> = packet(
    "semaphore", op(7, 0), dwords(3), "signal a semaphore, or wait for one",
    addr64<&Semaphore::addr>     ("addr",      1,         "the semaphore").aligned(8),
    bits  <&Semaphore::write_one>("write_one", 0, 29, 29, "store 1 where it signals").opt(),
    bits  <&Semaphore::signal>   ("signal",    0, 30, 30, "signal, do not wait").opt(),
    bits  <&Semaphore::mailbox>  ("mailbox",   0, 31, 31, "by way of the mailbox").opt());

// clang-format on
}  // namespace v0
}  // namespace sdma
