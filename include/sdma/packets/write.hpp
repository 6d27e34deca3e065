// SPDX-License-Identifier: MIT
#pragma once
// Packets that store without reading memory: the dwords that they carry, a repeated value, a timestamp.
//
//   Write{.dst = a, .data = words}                                     a[0, 4 * n) = words
//   Fill{.dst = a, .data = 0xa5a5a5a5, .bytes = 4096}                  repeats the dword a5a5a5a5
//   Timestamp{.addr = t}                                               stores the node's 100 MHz clock, 64 bits
//
// Ordering: none of these packets signals completion. A WRITE may overlap earlier and later copies, so signal
// completion with a FENCE or an ATOMIC, never with a WRITE. Read a timestamp only after you have seen a later FENCE or
// ATOMIC.
// Errors: check(packet) names the field and the rule. These are plain values; any thread may use them. A Write refers
// to its data and does not own it.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Stores `data`, which the packet carries, to `dst`.
struct Write {
  GpuVa dst{};                           ///< dword aligned
  std::span<const std::uint32_t> data{}; ///< 1 to 2^20 dwords
  std::uint8_t swap{}, policy{};
  bool encrypt{}, tmz{}, cpv{};          ///< cpv: the policy counts
};
template <> inline constexpr auto grammar::layout<Write> = packet(
    "write", op(2, 0), dwords(4, "data"), "store dwords that the packet carries",
    addr64 <&Write::dst>    ("dst",     1,         "destination").aligned(4),
    payload<&Write::data>   ("data",    3,  0, 19, "the dwords", minus_one),
    bits   <&Write::swap>   ("swap",    3, 24, 25, "endian swap").opt(),
    bits   <&Write::policy> ("policy",  3, 26, 28, "cache policy [inferred]").opt().in(kPolicies),
    bits   <&Write::encrypt>("encrypt", 0, 16, 16, "encrypted memory").opt(),
    bits   <&Write::tmz>    ("tmz",     0, 18, 18, "trusted memory").opt(),
    bits   <&Write::cpv>    ("cpv",     0, 28, 28, "the cache policy counts").opt().in(kCpv));

/// The unit that a Fill repeats: the low 1, 2 or 4 bytes of its data.
/// `byte`: 1 byte; `half`: 2 bytes; `dword`: 4 bytes.
enum class FillUnit : std::uint8_t { byte, half, dword };
template <> inline constexpr auto grammar::names<FillUnit> = std::to_array<Name>({{0, "byte"}, {1, "half"}, {2, "dword"}});

/// Fills `bytes` bytes at `dst` with the low `unit` of `data`, repeated. bytes_written() says what happens if `bytes`
/// is not a multiple of the unit.
struct Fill {
  GpuVa dst{};                           ///< aligned to the unit
  std::uint32_t data{}, bytes{};         ///< 1 to 2^30 bytes
  FillUnit unit = FillUnit::dword;
  std::uint8_t swap{}, policy{};
  bool cpv{};                            ///< the policy counts
};
template <> inline constexpr auto grammar::layout<Fill> = packet(
    "fill", op(11, 0), dwords(5), "fill a buffer with a repeated value",
    addr64<&Fill::dst>   ("dst",    1,         "destination"),
    bits  <&Fill::data>  ("data",   3,  0, 31, "the value").hex(),
    bits  <&Fill::bytes> ("bytes",  4,  0, 29, "number of bytes", minus_one).size().moved(until(v4_2) | between(v5_0, v5_2), 4, 0, 21),
    bits  <&Fill::unit>  ("unit",   0, 30, 31, "the unit that is repeated"),
    bits  <&Fill::swap>  ("swap",   0, 16, 17, "endian swap").opt(),
    bits  <&Fill::policy>("policy", 0, 24, 26, "cache policy [inferred]").opt().in(kUnscoped),
    bits  <&Fill::cpv>   ("cpv",    0, 28, 28, "the cache policy counts").opt().in(only(v6_0) | only(v7_0)))
  | rule<Fill>("fill-alignment", "dst must be aligned to the unit",
        [](const Fill& p) { return p.dst.value % (std::uint64_t{1} << (static_cast<unsigned>(p.unit) & 3)) == 0; });

/// How many bytes a fill writes. A dword fill ignores the low two bits of the stored length. So
/// `bytes = 4093` and `bytes = 4096` describe the same fill: one runtime encodes 4096 bytes in the first way, others in
/// the second. Other units fill exactly `bytes`.
constexpr std::uint64_t bytes_written(const Fill& p) noexcept {
  const std::uint64_t less_one = p.bytes - 1u;
  return p.unit == FillUnit::dword ? less_one / 4 * 4 + 4 : less_one + 1;
}

/// The dword that a fill repeats, from `dst` on.
constexpr std::uint32_t pattern_of(const Fill& p) noexcept {
  if (p.unit == FillUnit::byte) return (p.data % 256) * 0x01010101u;
  if (p.unit == FillUnit::half) return (p.data % 65536) * 0x00010001u;
  return p.data;
}

/// Clears `count` runs of `bytes` bytes each. Consecutive runs begin `stride` bytes apart. That it clears them is
/// [inferred], because the packet carries no value to store.
struct FillMulti {
  GpuVa dst{};
  std::uint32_t stride{}, count{}, bytes{};
  bool memlog_clear{};
  std::uint8_t policy{};
  bool cpv{};                            ///< the policy counts
};
template <> inline constexpr auto grammar::layout<FillMulti> = packet(
    "fill_multi", op(11, 1), dwords(6), "clear runs of equal length, a fixed distance apart",
    addr64<&FillMulti::dst>         ("dst",          3,         "first run"),
    bits  <&FillMulti::stride>      ("stride",       1,  0, 31, "bytes from one run to the next").size(),
    bits  <&FillMulti::count>       ("count",        2,  0, 31, "runs"),
    bits  <&FillMulti::bytes>       ("bytes",        5,  0, 25, "bytes per run").size(),
    bits  <&FillMulti::memlog_clear>("memlog_clear", 0, 31, 31, "clear the memory log").opt(),
    bits  <&FillMulti::policy>      ("policy",       0, 24, 26, "cache policy [inferred]").opt().in(kPolicies),
    bits  <&FillMulti::cpv>         ("cpv",          0, 28, 28, "the cache policy counts").opt().in(kCpv));

/// Stores the 64-bit value of the node's global clock at `addr`. The clock runs at 100 MHz and is the same for all
/// engines.
struct Timestamp {
  GpuVa addr{};                          ///< 8-byte aligned: the 32 bytes that runtimes reserve were for gfx7 and gfx8
  std::uint8_t l2_policy{};
  bool llc_policy{}, cpv{};              ///< cpv: the policies count
};
template <> inline constexpr auto grammar::layout<Timestamp> = packet(
    "timestamp", op(13, 2), dwords(3), "store the global clock",
    addr64<&Timestamp::addr>      ("addr",       1,         "the 64-bit word").aligned(8),
    bits  <&Timestamp::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2 [inferred]").opt().in(kUnscoped),
    bits  <&Timestamp::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level [inferred]").opt().in(kUnscoped),
    bits  <&Timestamp::cpv>       ("cpv",        0, 28, 28, "the cache policies count").opt().in(only(v6_0) | only(v7_0)));

/// Stores the 64-bit value of the engine's own clock at `addr`. TimestampSet sets that clock.
struct TimestampLocal {
  GpuVa addr{};                          ///< 8-byte aligned
  std::uint8_t l2_policy{};
  bool llc_policy{}, cpv{};              ///< cpv: the policies count
};
template <> inline constexpr auto grammar::layout<TimestampLocal> = packet(
    "timestamp_local", op(13, 1), dwords(3), "store the engine's own clock",
    addr64<&TimestampLocal::addr>      ("addr",       1,         "the 64-bit word").aligned(8),
    bits  <&TimestampLocal::l2_policy> ("l2_policy",  0, 24, 25, "cache policy in L2 [inferred]").opt().in(kPolicies),
    bits  <&TimestampLocal::llc_policy>("llc_policy", 0, 26, 26, "cache policy in the last level [inferred]").opt().in(kPolicies),
    bits  <&TimestampLocal::cpv>       ("cpv",        0, 28, 28, "the cache policies count").opt().in(kCpv));

/// Sets the engine's own clock.
struct TimestampSet { std::uint64_t value{}; };
template <> inline constexpr auto grammar::layout<TimestampSet> = packet(
    "timestamp_set", op(13, 0), dwords(3), "set the engine's own clock",
    bits<&TimestampSet::value>("value", 1, 0, 63, "ticks").value());

// clang-format on
}}  // namespace sdma::v0_3
