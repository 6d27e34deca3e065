// SPDX-License-Identifier: MIT
#pragma once
// What the commands for an engine depend on: its generation, its link to the host, and what its firmware needs.
//
//   auto e = engine_of(*sdma::target_version("gfx90a"), {.atomics = true, .xgmi_to_host = false});
//   if (!e) return fail("this GPU has no engine that the path knows");
//
//                            gfx900 to 904, 90c   gfx906, 908   gfx90a, 94x   gfx1010   gfx1030 and later
//   polls twice              yes                  yes           no            no        no
//   at least 64 dwords       yes                  no            no            no        no
//   HDP flush over PCIe      yes                  yes           yes           no        yes
//   cache control            no                   no            no            yes       yes
//
// The facts are those that the commands of ROCr show (README.md). Nothing decides by generation when a command is
// written, except cache control and the layout of packets.
//
// A plain value; any thread may use it. A target without a row in sdma::kGenerations gives no value.
#include "sdma/packets/generation.hpp"
#include "sdma/queue/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace runtime {

/// What the path between an engine and the host can do.
struct HostLink {
  bool atomics = true;        ///< it completes 64-bit atomics in host memory
  bool xgmi_to_host = false;  ///< the host writes the GPU's memory over xGMI, without the HDP between
};

/// ROCr's longest copy and fill: 32 bytes less than 2^22.
inline constexpr std::uint32_t kLongest = 0x3fffe0;

struct Engine {
  sdma::Generation generation = sdma::kDefaultGeneration;  ///< of its packets
  bool atomics = true;                                     ///< completions are atomics; otherwise, fences
  bool hdp_flush = true;                  ///< what the host wrote through the BAR is flushed before the copies
  bool poll_twice = false;                ///< one poll may end too early
  std::size_t least = 0;                  ///< dwords: a shorter submission is filled up with NOPs
  std::uint32_t longest_copy = kLongest;  ///< bytes in one packet; at most sdma::max_bytes<CopyLinear>(generation)
  std::uint32_t longest_fill = kLongest;  ///< bytes in one packet; a multiple of 4
};

/// The engine of a target, which is KFD's gfx_target_version: 90402.
constexpr std::optional<Engine> engine_of(std::uint32_t target, const HostLink& link = {}) noexcept {
  using enum sdma::Generation;
  const auto g = sdma::generation_of_target(target);
  if (!g) return {};
  const auto least = sdma::least_submission(target);
  return Engine{.generation = *g,
                .atomics = link.atomics,
                .hdp_flush = !link.xgmi_to_host && *g != v5_0,
                .poll_twice = *g<v4_4, .least = least> 1 ? least : 0u};
}

}  // namespace runtime
