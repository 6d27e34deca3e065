// SPDX-License-Identifier: MIT
#pragma once
// The options that choose a generation of packets: --gfx=gfx1100 or --sdma=6.0. Both set the same value, so the last
// one counts. Without them, a dump may name its engines; otherwise 4.4.2 is assumed, and a note says so.
//
//   add_generation(verb, o->generation);
//   const Generation g = chosen(o->generation, dump.generation);
//   note += generation_text(o->generation, dump.generation);
#include "options.hpp"
#include "sdma/packets/generation.hpp"

#include <optional>
#include <string>

namespace sdma::tool {

/// `given`: by an option; `said`: by a dump.
inline Generation chosen(std::optional<Generation> given, std::optional<Generation> said = {}) noexcept {
  return given ? *given : said.value_or(kDefaultGeneration);
}
/// Where the choice comes from: "; packets of SDMA 6.0, as it says". Empty if the options and a dump agree.
inline std::string generation_text(std::optional<Generation> given, std::optional<Generation> said) {
  const std::string name{name_of(chosen(given, said))};
  if (given && (!said || *said == *given)) return {};
  if (given) return "; packets of SDMA " + name + ", although it says " + std::string(name_of(*said));
  return "; packets of SDMA " + name + (said ? ", as it says" : ", which is assumed (--gfx)");
}

inline void add_generation(VerbOptions& verb, std::optional<Generation>& value) {
  const auto choose = [](const std::string& given, bool target) -> std::optional<Generation> {
    const auto g = generation_of(given);
    return g && given.starts_with("gfx") == target ? g : std::nullopt;
  };
  add_parsed(
      verb, "--gfx", value, [choose](const std::string& s) { return choose(s, true); },
      "a known target: write gfx90a, gfx942, gfx1100 or the like",
      "GPU that the packets are for (default: what FILE says, else gfx942)")
      .type("TARGET");
  add_parsed(
      verb, "--sdma", value, [choose](const std::string& s) { return choose(s, false); },
      "a known version: use 4.0 4.1 4.2 4.4 4.4.2 4.4.2-header 4.4.5 5.0 5.2 6.0 6.1 7.0 7.1",
      "like --gfx, but an engine version, such as 6.0")
      .type("VERSION");
}

}  // namespace sdma::tool
