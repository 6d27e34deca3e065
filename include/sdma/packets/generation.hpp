// SPDX-License-Identifier: MIT
#pragma once
// Generations of sDMA engines: which packets an engine knows, and where their fields are.
//
//   Generation g = Generation::v4_4_2;                       MI300X; the default everywhere
//   generation_of("gfx1100") == Generation::v6_0             a compiler target, or "6.0": a version of the engine
//   generation_of_target(90402) == Generation::v4_4_2        KFD's gfx_target_version (device/topology.hpp)
//   encode_to<Generation::v6_0>(copy, out)                   known when you compile: costs what 4.4.2 costs
//   encode_to(copy, out, g)                                  known at run time: one branch per layout that differs
//   g < Generation::v5_0                                     generations are in order of their versions
//
// A generation stands for all versions of engines whose packets are described alike: `v6_0` also for 6.0.1 to 6.0.3.
// The rows of kGenerations say where each comes from. `v4_4_2_header` is not an engine: it is 4.4.2 with the one packet
// length of the Linux kernel's 4.x header that other sources contradict (pte_modify; docs/packets.md). `v7_1` follows
// the runtime that writes into user queues where the kernel's header differs; scoped.hpp has its own packets.
//
// Constants and pure functions: any thread may call them. An unknown name or version gives no value.
#include "sdma/core/standard.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 {

enum class Generation : std::uint8_t {
  v4_0,           ///< gfx900, gfx904
  v4_1,           ///< gfx902, gfx909, gfx90c
  v4_2,           ///< gfx906, gfx908
  v4_4,           ///< gfx90a
  v4_4_2,         ///< gfx940 to gfx942
  v4_4_2_header,  ///< 4.4.2 with the packet lengths of the kernel's 4.x header
  v4_4_5,         ///< gfx950
  v5_0,           ///< gfx101x
  v5_2,           ///< gfx103x
  v6_0,           ///< gfx110x
  v6_1,           ///< gfx115x
  v7_0,           ///< gfx120x
  v7_1,           ///< gfx125x
};
inline constexpr std::size_t kGenerationCount = 13;  ///< the number of enumerators of Generation
/// The generation of MI300X, which everything assumes unless you say otherwise.
inline constexpr Generation kDefaultGeneration = Generation::v4_4_2;

/// A set of generations.
struct Generations {
  std::uint16_t mask{};  ///< bit i: the generation with the value i

  /// Is `g` in the set?
  constexpr bool contains(Generation g) const noexcept { return mask >> static_cast<unsigned>(g) & 1; }
  constexpr Generations operator|(Generations o) const noexcept { return {static_cast<std::uint16_t>(mask | o.mask)}; }
  constexpr Generations operator&(Generations o) const noexcept { return {static_cast<std::uint16_t>(mask & o.mask)}; }
  constexpr bool operator==(const Generations&) const = default;
};
inline constexpr Generations kAllGenerations{(1u << kGenerationCount) - 1};  ///< every one

/// A generation by name, and the range of gfx_target_version that has it (major * 10000 + minor * 100 + stepping).
struct GenerationRow {
  Generation generation;                    ///< which one it is
  std::string_view name;                    ///< "4.4.2", as options name it
  std::uint32_t first_target, last_target;  ///< gfx_target_version, both included
};
// Sources: K, the Linux kernel's KFD, which lists the chips of each engine version and the target version of each chip
// (6.1 for the rows up to 6.0); R, a runtime that selects its packets by target; P, public sources about gfx94x and
// gfx950, collected in docs/packets.md.
// clang-format off
inline constexpr std::array kGenerations{
    GenerationRow{Generation::v4_0,           "4.0",           90000,  90000},   // K: Vega 10
    GenerationRow{Generation::v4_0,           "4.0",           90004,  90004},   // K: Vega 12, engine 4.0.1
    GenerationRow{Generation::v4_1,           "4.1",           90002,  90002},   // K: Raven
    GenerationRow{Generation::v4_1,           "4.1",           90009,  90009},   // Raven 2, engine 4.1.1: K lists it as Raven
    GenerationRow{Generation::v4_1,           "4.1",           90012,  90012},   // K: Renoir (gfx90c), engine 4.1.2
    GenerationRow{Generation::v4_2,           "4.2",           90006,  90006},   // K: Vega 20
    GenerationRow{Generation::v4_2,           "4.2",           90008,  90008},   // K: Arcturus, engine 4.2.2
    GenerationRow{Generation::v4_4,           "4.4",           90010,  90010},   // K: Aldebaran (gfx90a)
    GenerationRow{Generation::v4_4_2,         "4.4.2",         90400,  90402},   // P: gfx94x
    GenerationRow{Generation::v4_4_2_header,  "4.4.2-header",      1,      0},   // no target
    GenerationRow{Generation::v4_4_5,         "4.4.5",         90500,  90500},   // P: gfx950
    GenerationRow{Generation::v5_0,           "5.0",          100100, 100103},   // K: Navi 1x
    GenerationRow{Generation::v5_2,           "5.2",          100300, 100306},   // K: Navi 2x; R: copies of 30 bits from here on
    GenerationRow{Generation::v6_0,           "6.0",          110000, 110003},   // K
    GenerationRow{Generation::v6_1,           "6.1",          110500, 110503},   // R: gfx11 in one
    GenerationRow{Generation::v7_0,           "7.0",          120000, 120001},   // R: gfx12, with a box copy of its own
    GenerationRow{Generation::v7_1,           "7.1",          120500, 120599},   // P: gfx12.5
};
// clang-format on

/// "4.4.2"
constexpr std::string_view name_of(Generation g) noexcept {
  for (const auto& r : kGenerations)
    if (r.generation == g) return r.name;
  return "?";
}
/// Can packets of this generation be encoded and decoded? True of every enumerator.
constexpr bool described(Generation g) noexcept { return static_cast<std::size_t>(g) < kGenerationCount; }

/// The engines of a target, from its KFD version (90402); nothing for one that has no row.
constexpr std::optional<Generation> generation_of_target(std::uint32_t version) noexcept {
  for (const auto& r : kGenerations)
    if (version >= r.first_target && version <= r.last_target) return r.generation;
  return {};
}

/// "gfx90a": the target's KFD version, 90010; nothing if `name` is not a target.
constexpr std::optional<std::uint32_t> target_version(std::string_view name) noexcept {
  if (!name.starts_with("gfx") || name.size() < 6 || name.size() > 7) return {};
  // The last two characters are the minor version and the stepping, in hexadecimal.
  const auto digit = [](char c) -> std::uint32_t {
    return c >= '0' && c <= '9'   ? static_cast<std::uint32_t>(c - '0')
           : c >= 'a' && c <= 'f' ? static_cast<std::uint32_t>(c - 'a' + 10)
                                  : 99u;
  };
  std::uint32_t major = 0;
  for (const char c : name.substr(3, name.size() - 5)) {
    if (digit(c) > 9) return {};
    major = major * 10 + digit(c);
  }
  const auto minor = digit(name[name.size() - 2]), stepping = digit(name.back());
  if (minor > 15 || stepping > 15) return {};
  return major * 10000 + minor * 100 + stepping;
}

/// "4.4.2", "6.0.3" (any revision of 6.0) or "gfx942"; nothing for other names.
constexpr std::optional<Generation> generation_of(std::string_view name) noexcept {
  if (const auto version = target_version(name)) return generation_of_target(*version);
  for (const auto& r : kGenerations)
    if (r.name == name) return r.generation;
  // A revision without a row of its own is its minor version, unless that has revisions with rows.
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 2 != name.size() || name.back() < '0' || name.back() > '9') return {};
  const auto minor = name.substr(0, dot);
  if (minor == "4.4" && name.back() != '0') return {};
  for (const auto& r : kGenerations)
    if (r.name == minor) return r.generation;
  return {};
}

// The words for sets in a description (layout.hpp).
namespace grammar {
using enum Generation;

/// From `first` to `last`, both included.
constexpr Generations between(Generation first, Generation last) noexcept {
  Generations s;
  for (auto i = static_cast<unsigned>(first); i <= static_cast<unsigned>(last); ++i)
    s.mask = static_cast<std::uint16_t>(s.mask | 1u << i);
  return s;
}
/// `g` alone.
constexpr Generations only(Generation g) noexcept { return between(g, g); }
/// `g` and all later ones.
constexpr Generations since(Generation g) noexcept { return between(g, Generation::v7_1); }
/// `g` and all earlier ones.
constexpr Generations until(Generation g) noexcept { return between(Generation::v4_0, g); }
inline constexpr auto k4 = until(Generation::v4_4_5);  ///< every 4.x
/// Where copies and others have cache policies: in 4.4 and in 5.2 a debugger has them, from 6.0 on the kernel's header.
inline constexpr auto kPolicies = between(Generation::v4_4, v4_4_5) | since(v5_2);
/// Where a runtime gives an access a scope and a temporal hint instead (scope.hpp), in the same bits.
inline constexpr auto kScopes = only(v6_1) | only(v7_1);
/// Where the accesses of these packets have cache policies, and no scopes.
inline constexpr auto kUnscoped = between(Generation::v4_4, v4_4_5) | between(v5_2, v6_0) | only(v7_0);
inline constexpr auto k44 = between(Generation::v4_4, v4_4_5);  ///< 4.4 to 4.4.5
/// Where a box has up to 2^13 slices, as the kernel's headers say. From 7.0 on, a runtime's structures have 2^14, sizes
/// and pitches of 16 bits, and slice pitches of 32.
inline constexpr auto k13BitSlices = between(v5_0, v6_1), k16BitBoxes = since(v7_0);
/// Where a bit says that the cache policies of the packet count.
inline constexpr auto kCpv = since(v6_0);
/// Engines whose copies store their length in 22 bits.
inline constexpr auto k22Bits = until(v4_2) | only(v5_0);
}  // namespace grammar

}}  // namespace sdma::v0_3
