// SPDX-License-Identifier: MIT
#pragma once
// A limit on the power of each GPU's board, and the clock of the compute dies that follows from it.
//
//   auto r = limit_power(schedule, *m, {.watts = 600, .policy = PowerPolicy::component});
//   if (r) printf("%.0f MHz, %.1f us\n", r->mhz, r->simulation.ns / 1e3);
//
// Software can set no clock but that of the compute dies, so only kernels slow down, or speed up. The times that a
// schedule states for them hold at xcd.loaded_mhz, which matrix products reach at the board's own limit.
//
//   power of kernels = kernel.active_watts x share x (clock / xcd.loaded_mhz) ^ xcd.clock_exponent
//
//   uniform      the kernels' power is to that at the board's own limit as what the limit leaves of idle power is to
//                what the board's own leaves: each part of the GPU has its own part of the limit, used or not
//   component    kernels get what idle power, memory, links and engines leave of the limit, in the mean over the round
//
// The clock is one for all GPUs and for the whole round: a mean over time, without the lag of a controller. The limit
// is not held where even the slowest clock does not suffice, or the fixed parts of `uniform` exceed it together
// (`held`). No clock is above xcd.most_mhz.
//
// Pure; allocates. Errors: those of `simulate`; the terms that the machine lacks; a limit that is not above the idle
// power, or above the board's own.
#include "sdma/simulate/simulate.hpp"

namespace sdma { inline namespace v0_3 {

/// Who gets the power that a limit leaves.
enum class PowerPolicy : std::uint8_t {
  uniform,    ///< each part of a GPU has its own part of the limit
  component,  ///< kernels get what all else leaves
};

/// What to hold, and how.
struct PowerLimit {
  double watts{};        ///< of each GPU's board
  PowerPolicy policy{};  ///< who gets them
};

/// A round under a limit.
struct LimitedRun {
  double clock{};           ///< relative to xcd.loaded_mhz
  double mhz{};             ///< of the compute dies
  bool held{};              ///< the GPUs take no more than the limit, in the mean over the round
  Simulation simulation{};  ///< at this clock
  Energy energy{};          ///< of it
  /// The time with the exponent at either of its bounds.
  Bounds ns{};
};
/// Simulates the schedule under the limit.
Result<LimitedRun, std::vector<Diagnostic>> limit_power(const Schedule&, const MachineDescription&, const PowerLimit&,
                                                        const SimulateOptions& = {});
/// For people: one line or two. Ends with a newline. `unlimited_ns`: the time without a limit.
std::string to_text(const LimitedRun&, const PowerLimit&, double unlimited_ns);

}}  // namespace sdma::v0_3
