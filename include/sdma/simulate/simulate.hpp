// SPDX-License-Identifier: MIT
#pragma once
// Computes how long a schedule takes on a described machine: the engine code that the software device also uses
// executes the schedule's real packets in virtual time.
//
//   auto m = mi300x_machine();
//   auto t = simulate(schedule, *m);                    // or simulate(plan.schedule, *m) of a collective
//   if (!t) for (const auto& d : t.error()) puts(to_string(d).c_str());
//   printf("%.1f us, of which control %.1f\n", t->ns / 1e3, t->phase_ns[0] / 1e3);
//
// Example: a command group that consists of a copy and an atomic.
//
//   host     [build][build][submit][doorbell]                                                             [poll]
//                                    \ flight, fetch                                              flight  /
//   engine                            [front end][--- bytes, at the slowest of engine, ---]      [release]
//                                                [    links and memories               ][latency]
//            control ................|schedule .|copy .......................................|sync ............|
//
//   A front end takes packets in ring order, one at a time. A data packet waits for room in the engine's window: it
//   needs min(bytes, window), so a packet that needs the whole window runs alone. It requests its bytes once the
//   packets before it have requested theirs, and it lands latency_ns later. Until then it holds its room, and the next
//   packet may overlap it.
//   A fence or an atomic stays in the front end until all earlier packets of its queue have landed, then issues. The
//   next packet starts at that moment, before the fence or atomic itself has landed. Atomics on one word in host memory
//   are serialised. A poll reads its word, which takes a round trip. If the condition does not hold, the poll sees a
//   later change of the word poll_ns and one flight after that change. Flows share the engine, each direction of a
//   link, and memory by max-min fairness.
//
// engine/ fetches, checks and executes the packets: fences, atomics, polls, conditions and indirect buffers really
// execute, in the simulation's own memory. The bytes of copies are moved only if `contents` is set or a packet waits
// for them.
//
// The simulation times rounds. A round lasts from the first `set` after the last wait (or from the first submit, if
// there is no such `set`) to the end of the waits that follow, so a prelaunched collective is timed from its trigger.
// With kernels, which continue after the waits of the host, the whole simulation is one round.
// `ns` is the time of the last round. Phases are those of the critical path. To find that path, start at the end of the
// round and go back from each step to the one that it waited for. The phases add up to `ns`.
//
// The schedule's kernels run beside the host threads, from the beginning: they wait (acquire), compute, set (release),
// submit. A kernel computes, or adds, with its share of the GPU's compute units; kernels of one GPU that together need
// more than all are slowed alike, so two that need the whole GPU take twice as long. A sum takes as long as
// its bytes at the slowest of the memories and links on their way.
// A simulation is deterministic: the same schedule and machine give the same times. Absolute times are only as certain
// as the machine's parameters; `sensitivity` computes how certain.
// Any thread may simulate; nothing is shared. Allocates.
// Errors: Diagnostics for the schedule's own problems; for a GPU, engine or link that the machine does not have; for a
// link that bytes cross and whose rate is unknown, which has no default; for a packet that the engine refuses; for each
// wait that never ends, with the agent that waits and what it waits for; and for a schedule that is too long to
// simulate.
#include "sdma/schedule/schedule.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/machine.hpp"
#include "sdma/trace/trace.hpp"

#include <functional>

namespace sdma { inline namespace v0_3 {

/// What a part of a round is spent on. `control`: the host builds packets; `schedule`: doorbells, fetches, triggers and
/// polls; `copy`: from the engine's front end until all bytes have landed; `sync`: fences and atomics, until a thread
/// notices them; `compute`: kernels work.
enum class Phase : std::uint8_t { control, schedule, copy, sync, compute };
inline constexpr std::size_t kPhases = 5;  ///< how many phases there are
/// "control", ...
std::string_view name(Phase) noexcept;

/// What to simulate, what to record, and when to give up.
struct SimulateOptions {
  trace::Recorder* recorder{};  ///< clock "virtual"; null: no trace
  bool contents = false;        ///< also move the bytes, and check the schedule's expectations
  std::uint64_t seed = 0;       ///< seed of the contents
  double time_limit_ns = 1e12;  ///< a simulation that has not ended by this virtual time is an error
  /// A simulation that takes more steps is an error. An action of a host is a step, and so is each event: a doorbell, a
  /// packet that an engine fetches, bytes that have moved. A step takes about 100 bytes of memory.
  std::uint64_t max_steps = std::uint64_t{1} << 23;
  /// Asked every few steps: true ends the simulation, which is an error. Once true, it has to stay true.
  std::function<bool()> stop{};
  const SourceMap* map{};  ///< the lines of the actions, from parse_schedule
  double clock = 1;        ///< of the compute units, relative to that with which kernels take the times that they state
};

/// One step of the critical path.
struct PathStep {
  double begin_ns{}, end_ns{};  ///< from the beginning of the simulation
  Phase phase{};                ///< the phase that this step counts for
  std::string where{};          ///< "host main", "gpu0 engine 14", "link gpu0->gpu1"
  std::string what{};           ///< "builds 7 packets of gpu0.b2b", "moves 64K", "waits for the poll of gpu0.b2b"
  friend bool operator==(const PathStep&, const PathStep&) = default;
};

/// A resource, and how busy it was.
struct Busy {
  /// `host`: a host thread; `engine`: an sDMA engine; `link`: a link, or a path that
  /// links share; `memory`: of a GPU or of the host; `agent`: a compute kernel.
  enum class Kind : std::uint8_t { host, engine, link, memory, agent };
  Kind kind{};         ///< what kind of resource it is
  std::string name{};  ///< "host main", "gpu0 engine 14", "link gpu0->gpu1", "gpu0 memory"
  double busy_ns{};    ///< in the last round: a thread that does not wait, an engine with a packet, a link with bytes
  std::uint64_t bytes{};  ///< bytes that crossed it in the last round; of an engine, those that it moved
  double rate{};          ///< its maximum, in bytes/ns; of an engine, for the packets that moved them; 0: it has none
};

/// What a simulation predicts for a run.
struct Simulation {
  /// When a round began, at its trigger or first submit, and when the wait that ended it saw its value.
  struct Round {
    double begin_ns{}, end_ns{};  ///< from the beginning of the simulation
  };
  double ns{};                             ///< time of the last round
  double total_ns{};                       ///< time of the whole run
  std::vector<Round> rounds{};             ///< in order
  std::array<double, kPhases> phase_ns{};  ///< of the last round; their sum is `ns`
  double working_ns{};  ///< of the last round: the part of the critical path in which bytes move or kernels compute
  std::vector<PathStep> path{};                   ///< of the last round, in order of time
  std::vector<Busy> busy{};                       ///< the resources that were used, by kind and name
  std::string bottleneck{};                       ///< what most of the path's time is spent on: one phrase
  std::uint64_t packets{}, bytes{}, doorbells{};  ///< of the whole run; bytes: those that engines moved
  std::uint64_t steps{};                          ///< what it took of SimulateOptions::max_steps
  CopyPattern pattern{};  ///< what its copies have in common: MachineDescription::judgement says how far such were off
  Activity activity{};    ///< of the last round: what energy (energy.hpp) is made of
  /// Errors: expectations that fail, with `contents`. Warnings: kernels whose time is too short for their bytes.
  std::vector<Diagnostic> findings{};
};

/// Can the machine begin this schedule? If not, `simulate` says why: too few GPUs, a missing engine, a fixed address;
/// or its bytes cross a link whose rate is unknown.
[[nodiscard]] bool can_begin(const Schedule&, const MachineDescription&);

/// Simulates one run of the schedule on the machine.
Result<Simulation, std::vector<Diagnostic>> simulate(const Schedule&, const MachineDescription&,
                                                     const SimulateOptions& = {});

/// How a result depends on the machine's parameters.
struct Sensitivity {
  /// One parameter of the machine, and how the time depends on it.
  struct Row {
    Cost cost{};                 ///< the parameter
    double per_percent{};        ///< by how many percent the time grows if the parameter grows by one percent
    double low_ns{}, high_ns{};  ///< the time with the parameter at either end of its uncertainty, the lower first
    std::array<double, kPhases> phase_ns{};  ///< by how much each phase grows if the parameter grows by one percent
    bool together{};  ///< the machine has a covariance of it with others: alone, it may be off by more than with them
    bool at_bound{};  ///< its fit ended at a bound: Parameter::at_bound
  };
  /// `ns` is the time, and `uncertainty_ns` half the width of its 68 % interval. The uncertainty combines the
  /// deviations of the rows and the machine's model_error, as independent errors; for rows that are `together`, the
  /// machine's covariance says how errors make up for each other. The model_error applies to the part
  /// of the time in which neither bytes move nor kernels compute: rates are known better.
  double ns{}, uncertainty_ns{};
  std::vector<Row> rows{};  ///< the parameters that matter, the most important first
  /// The time if a mechanism that is on or off is not as the machine has it: Parameter::alternative.
  struct Alternative {
    Cost cost{};         ///< the parameter
    double value{};      ///< its alternative
    double ns{};         ///< the time with it
    std::string when{};  ///< what is the case then
  };
  std::vector<Alternative> alternatives{};  ///< those that change the time by more than a percent
};
/// Simulates the schedule once, and once more with up to 31 values of parameters at a time. A value that changes what
/// happens, and not only when, has a simulation of its own.
Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule&, const MachineDescription&,
                                                         const SimulateOptions& = {});

/// How a schedule's time moves with the machine: what its interval is made of, and those of its ratios to others.
struct Spread {
  double ns{}, uncertainty_ns{};  ///< as in Sensitivity
  double latent{};                ///< the part of the time that the machine's model_error applies to, from 0 to 1
  double model_error{};           ///< the machine's, for schedules of this pattern
  std::vector<double> moved{};    ///< the times on machines that are a little off, in the same order for each schedule
  std::vector<Sensitivity::Alternative> alternatives{};  ///< as in Sensitivity
  std::vector<Cost> at_bound{};  ///< the parameters that move the time, and whose fit ended at a bound
  /// A parameter with which the schedule cannot be simulated, within its uncertainty: the interval leaves it out.
  std::optional<Cost> failed{};
};
/// Simulates the schedule as `sensitivity` does.
Result<Spread, std::vector<Diagnostic>> spread(const Schedule&, const MachineDescription&, const SimulateOptions& = {});

/// How long a schedule takes, and how its speed compares with that of a baseline.
struct SpeedUp {
  /// How many times as fast as the baseline it is (2: it takes half the time), and half the width of the 68 % interval.
  double value{}, uncertainty{};
  double ns{}, uncertainty_ns{};  ///< as in Sensitivity
  /// Whether the interval contains 1: the model does not know which of the two is faster.
  bool tie() const noexcept { return value - uncertainty <= 1 && value + uncertainty >= 1; }
};
/// Compares what `spread` found with this machine, without another simulation. Most parameters change both times alike,
/// so the ratio is more certain than a time: what is left is mostly the machine's model_error.
SpeedUp speed_up(const Spread& baseline, const Spread&, const MachineDescription&);
/// The same of schedules, which it simulates. The baseline may be the schedule.
Result<SpeedUp, std::vector<Diagnostic>> speed_up(const Schedule& baseline, const Schedule&, const MachineDescription&,
                                                  const SimulateOptions& = {});
/// The same of several schedules: the baseline is simulated only once.
Result<std::vector<SpeedUp>, std::vector<Diagnostic>> speed_ups(const Schedule& baseline,
                                                                std::span<const Schedule* const>,
                                                                const MachineDescription&, const SimulateOptions& = {});

// The result as text for people and as JSON for programs. timeline_svg (trace/write.hpp) draws what
// SimulateOptions::recorder has recorded.

struct LowerBound;  // lower_bound.hpp
/// Ends with a newline. The table has the uncertainty, and what it depends on, only if a Sensitivity is given; how far
/// schedules of this pattern were off, only if the machine is; the distance from a bound, only if that is, and holds.
std::string to_table(const Simulation&, const Sensitivity* = nullptr, const MachineDescription* = nullptr,
                     const LowerBound* = nullptr);
/// How far schedules of this pattern were off: "one source: 85 published cells were off by 7.1 % (worst 56 %), ...".
std::string judged_text(CopyPattern, const MachineDescription&);
/// Per phase of the critical path, the parameters that it depends on most: by how much the phase and the time grow if
/// the parameter grows by one percent. Phases that take no time are left out. Ends with a newline.
std::string explain(const Simulation&, const Sensitivity&);
/// {"ns":.., "uncertainty_ns":.., "phases":{..}, "path":[..], "busy":[..], "sensitivity":[..]}
std::string to_json(const Simulation&, const Sensitivity* = nullptr);

/// What it means that this parameter's fit ended at a bound: one sentence, without a full stop.
std::string bound_text(Cost);

/// "1.6 us", "430 ns", "2.85 ms".
std::string time_text(double ns);

}}  // namespace sdma::v0_3
