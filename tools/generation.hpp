// SPDX-License-Identifier: MIT
#pragma once
// The options that choose a generation of packets: --gfx=gfx1100
// or --sdma=6.0. Both set the same value, so the last one counts.
//
//   add_generation(verb, o->text.generation);
#include "options.hpp"
#include "sdma/packets/generation.hpp"

namespace sdma::tool {

inline void add_generation(VerbOptions& verb, Generation& value) {
  const auto choose = [](const std::string& given, bool target) -> std::optional<Generation> {
    const auto g = generation_of(given);
    return g && given.starts_with("gfx") == target ? g : std::nullopt;
  };
  add_parsed(
      verb, "--gfx", value, [choose](const std::string& s) { return choose(s, true); },
      "a known target: write gfx90a, gfx942, gfx1100 or the like", "GPU whose packets these are (default: gfx942)")
      .type("TARGET");
  add_parsed(
      verb, "--sdma", value, [choose](const std::string& s) { return choose(s, false); },
      "a known version: use 4.0 4.1 4.2 4.4 4.4.2 4.4.2-header 4.4.5 5.0 5.2 6.0 6.1 7.0 7.1",
      "the same, by the version of its sDMA engines (default: 4.4.2)")
      .type("VERSION");
}

}  // namespace sdma::tool
