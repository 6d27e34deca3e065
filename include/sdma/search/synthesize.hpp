// SPDX-License-Identifier: MIT
#pragma once
// Makes a schedule for a collective from a node's topology, and proves it. `sdma explore --synthesize` is its command
// line (docs/explore.md).
//
//   auto r = synthesize({.collective = Synthesized::all_gather, .bytes = 256 << 20}, *layout_machine("ring:8"));
//   if (!r) for (const auto& d : r.error()) puts(to_string(d).c_str());
//   printf("%s: %.1f us, %.2f times the bound\n", r->how.c_str(), r->ns / 1e3, r->ns / r->bound.ns);
//   save_file("ring.sdma", to_text(r->schedule));
//
// Bytes are routed along trees over the links, such that no link gets much fuller than others (lib/search/routes.hpp):
// directly, or over other GPUs where a link is missing, slow or shared. Each set of trees becomes schedules of several
// shapes: queues, pieces, broadcasts, host threads. All are simulated, and so are `others`, such as hand-written
// variants. The fastest that the checker proves is the result, so it is never slower than the fastest of `others`.
// Deterministic, unless a deadline ends it. A reduce_scatter adds with kernels, which take compute units.
//
// Errors: a Diagnostic that names the GPU which another one cannot reach; numbers that make no collective; nothing that
// is proved. Allocates. Any thread may call it; nothing is shared.
#include "sdma/check/check.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/simulate/lower_bound.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A collective of which a schedule can be made.
enum class Synthesized : std::uint8_t {
  all_gather,      ///< each GPU gets the part of each other one
  all_to_all,      ///< each GPU sends a part to each other one
  broadcast,       ///< all GPUs get all bytes of one
  reduce_scatter,  ///< each GPU gets the sum of its part of all
};
/// All of them.
inline constexpr Synthesized kSynthesized[] = {Synthesized::all_gather, Synthesized::all_to_all, Synthesized::broadcast,
                                               Synthesized::reduce_scatter};
/// "all_gather", ...
std::string_view name(Synthesized) noexcept;

/// A schedule that somebody else made for the same, and its name.
struct Rival {
  std::string name{};   ///< what the result is called, if it is this one
  Schedule schedule{};  ///< with the expectation of the collective
};

/// What to make, beside what, and for how long.
struct SynthesizeOptions {
  Synthesized collective{};            ///< what the schedule does
  std::uint64_t bytes = 1 << 20;       ///< as in collectives/options.hpp; a reduce_scatter adds so many on each GPU
  std::uint32_t root = 0;              ///< of a broadcast
  Profile profile{};                   ///< what the checker assumes
  std::vector<Rival> others{};         ///< those that the machine cannot run are left out
  std::optional<Deadline> deadline{};  ///< the best so far is the result
  /// Called before each simulation; false ends the search.
  std::function<bool(std::size_t done, double best_ns)> proceed{};
};

/// A schedule that was made, and how good it is.
struct Synthesis {
  Schedule schedule{};  ///< proved
  std::string how{};    ///< for people: "trees over all links, 8 pieces"; or the name of one of the others
  bool rival{};         ///< it is one of the others
  double ns{};          ///< the time until the last byte and word are there
  LowerBound bound{};   ///< of what it moves
  std::optional<std::string> best_other{};  ///< the fastest of the others that is proved
  double other_ns{};                        ///< its time
  std::size_t simulated{};                  ///< schedules
  std::size_t refused{};                    ///< of them, those that were not proved, or cannot be simulated
  std::vector<std::string> assumes{};       ///< CheckReport::assumes of the result
};
/// The result for all GPUs of the machine.
Result<Synthesis, std::vector<Diagnostic>> synthesize(const SynthesizeOptions&, const MachineDescription&);

}}  // namespace sdma::v0_3
