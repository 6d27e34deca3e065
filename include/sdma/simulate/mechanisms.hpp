// SPDX-License-Identifier: MIT
#pragma once
// The single mechanisms from which a machine is calibrated, and their times on a device: the table of a fit.
//
//   const auto all = mechanisms(device->topology());
//   auto m = measure(*device, all, {.source = "my node, today"});        // a table: sdma/simulate/measurements.hpp
//   auto f = fit(m->observations, m->from(unfitted(device->topology(), *m)), m->options);
//
// A mechanism is a schedule of one round with as few other costs as possible:
//
//   submit_*    a doorbell: one fence or eight; two queues or four; a copy of 4K or 1M; an atomic
//   copy_*      a trigger, then a copy of one size over one path: within GPU 0, to and from the host, to and from GPU
//               1; or several copies in a row
//   engines_*   a trigger, then a copy on each of two engines: over one path, or in both directions of the host's link
//   swap_*, broadcast_*, atomic_*      a trigger, then one of these
//
// None is a collective, so that a machine that was fitted to them can be judged by its predictions of collectives.
//
//   submitted      time = the host submits ... the host has seen all completions
//   triggered      publish | settle | time = the host stores the trigger ... the host has seen all completions
//
// `measure` goes through all mechanisms in several passes, so that a slow change of the machine becomes spread, not
// error. The value of an observation is the median of the passes' medians; its spread is the standard deviation of
// these medians. Above 5 % of the value, the spread lowers the weight of the observation in the fit, in proportion.
// No bytes are compared, so measure only what works.
//
// One thread measures; anything else that runs on the device or on the host disturbs the times. Each round has a
// deadline: `round_limit` after its beginning. Allocates.
// Errors: Diagnostics if a mechanism cannot be bound, if a queue stops, or if a round does not end in time.
#include "sdma/device/device.hpp"
#include "sdma/simulate/measurements.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// One mechanism of a machine, and the schedule that measures it.
struct Mechanism {
  std::string file{}, settings{};              ///< "copy_gpu0_gpu1.sdma", "n=1 bytes=64K"; together they are its id
  std::string text{};                          ///< of the file, which mechanisms that differ in their settings share
  std::shared_ptr<const Schedule> schedule{};  ///< one round; its values are those of epochs
  std::optional<std::size_t> trigger{};    ///< the signal that releases the round; none: the time begins at the submit
  std::vector<std::size_t> completions{};  ///< signals that reach the epoch's number when the round is complete
  /// "copy_gpu0_gpu1 n=1 bytes=64K": what names it in the table and in messages.
  std::string id() const { return file.substr(0, file.rfind('.')) + (settings.empty() ? "" : " " + settings); }
};

/// Which mechanisms `mechanisms` lists.
struct MechanismOptions {
  std::uint64_t most_bytes = std::uint64_t{64} << 20;  ///< of the largest copy; at least 1 MiB
};

/// A schedule as a mechanism, to be measured, too. Its one host thread may submit queues once, then set one signal once
/// (the trigger), and then wait until signals reach 1; polls and fences use epochs, so that it can be repeated.
/// Diagnostics: the errors of the text, or what of this the schedule does not keep to.
Result<Mechanism, std::vector<Diagnostic>> mechanism(std::string file, std::string text, std::string settings = {});

/// All mechanisms of a node; none if it has no GPU with a live engine. GPU 0 and its first peer stand for all. Between
/// other pairs of GPUs, only the two largest sizes are measured, for the rate of the link.
std::vector<Mechanism> mechanisms(const Topology&, const MechanismOptions& = {});

/// How `measure` measures mechanisms.
struct MeasureOptions {
  std::string source = "measured";  ///< of each line of the table
  std::size_t judged = 0;           ///< how many of the last mechanisms have weight 0: predicted, but not fitted to
  std::uint32_t passes = 9;         ///< how often it goes through all mechanisms; 1 or more
  std::uint32_t rounds = 15, warmups = 3;                           ///< of each mechanism in each pass
  std::chrono::nanoseconds settle = std::chrono::microseconds(30);  ///< from publishing to the trigger
  std::chrono::nanoseconds round_limit = std::chrono::seconds(10);  ///< how long one round may take
  /// Called before each mechanism of each pass. If it returns false, `measure` ends without a table.
  std::function<bool(const Mechanism&, std::size_t done, std::size_t of)> progress{};
};

/// A line for each mechanism, in their order, and the parameters that these lines can determine. An error without
/// Diagnostics: `progress` ended it.
Result<Measurements, std::vector<Diagnostic>> measure(Device&, std::span<const Mechanism>, const MeasureOptions& = {});

/// The machine from which the fit starts. Links have the rates that the two largest copies show, where these were
/// measured and the topology knows none; what was not measured is assumed, and its source says so.
MachineDescription unfitted(const Topology&, const Measurements&);

}}  // namespace sdma::v0_3
