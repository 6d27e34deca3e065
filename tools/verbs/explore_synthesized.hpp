// SPDX-License-Identifier: MIT
#pragma once
// `sdma explore --synthesize`: a schedule that is made from a topology, beside the hand-written ones that fit it.
//
//   return explore_synthesized({.collective = Synthesized::all_gather, .bytes = 64 << 10}, machine);
#include "sdma/search/synthesize.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace sdma::tool {

struct SynthesizeArguments {
  std::optional<Synthesized> collective{};
  std::uint64_t bytes = 1 << 20;
  std::uint32_t root = 0;
  Profile profile{};
  std::optional<std::chrono::nanoseconds> budget{};
  std::string command{};  ///< that makes it again
  bool json = false;
};
int explore_synthesized(const SynthesizeArguments&, const MachineDescription&);

}  // namespace sdma::tool
