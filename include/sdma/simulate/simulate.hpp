#pragma once
// How long a schedule takes on a described machine: its real packets, executed by the one engine, in virtual time.
//
//   auto m = mi300x_machine();
//   auto t = simulate(schedule, *m);                    // or simulate(plan.schedule, *m) of a collective
//   if (!t) for (const auto& d : t.error()) puts(to_string(d).c_str());
//   printf("%.1f us, of which control %.1f\n", t->ns / 1e3, t->phase_ns[0] / 1e3);
//
// What happens to a command group of a copy and an atomic:
//
//   host     [build][build][group][doorbell]                                                              [look]
//                                    \ flight, fetch                                              flight  /
//   engine                            [front end][--- bytes, at the slowest of engine, ---]      [release]
//                                                [    links and memories               ][latency]
//            control ................|schedule .|copy .......................................|sync ............|
//
//   A front end takes packets in ring order, one after another. A data packet waits for room in the engine's window
//   (min(bytes, window): one that needs all of it runs alone), asks for its bytes when those before it have asked
//   for theirs, and lands latency_ns later: until then it holds its room, and the next may overlap it.
//   A fence or an atomic stands in the front end until everything earlier in its queue has landed, and leaves; what is behind
//   it goes on then, before it has landed itself. Atomics on one word of the host take turns.
//   A poll looks, a round trip; if its word is not there, it sees the change poll_ns and a flight after it.
//   Flows share what they cross (engine, link by direction, memory) max-min fair.
//
// Packets are fetched, checked and executed by engine/: fences, atomics, polls, conditions and indirect buffers really happen, in a
// memory of their own. Bytes of copies are moved only where `contents` asks for it or a packet waits for them.
//
// A round is what is timed: from the first `set` after the last wait (or, where there is none, the first submit) to the
// end of the waits behind it. So a prelaunched collective counts from its trigger. `ns` is the last round's.
// Phases are those of the critical path: from the end of the round backwards, always to what it waited for; they sum to `ns`.
//
// Agents are compute kernels: they wait (acquire), compute, and set (release), beside the host threads.
// Deterministic: the same schedule and machine give the same times. Threads: any; nothing shared. Allocates. Absolute
// times are as certain as the machine's parameters: `sensitivity` says so.
// Errors: Diagnostics: the schedule's own problems; a GPU, engine or link that the machine does not have; a packet that the
// engine refuses; waits that never end, each with who waits and for what.
#include "sdma/schedule/schedule.hpp"
#include "sdma/simulate/machine.hpp"
#include "sdma/trace/trace.hpp"

namespace sdma {
inline namespace v0 {

enum class Phase : std::uint8_t { control, schedule, copy, sync, compute };
inline constexpr std::size_t kPhases = 5;
/// "control", ...
std::string_view name(Phase) noexcept;

/// What a compute kernel does next.
struct AgentStep {
  enum class Kind : std::uint8_t { wait, compute, set, add };
  Kind kind{};
  GpuVa signal{};  ///< wait, set, add: in link space
  Compare func = Compare::ge;
  std::uint64_t value{};  ///< wait, set, add
  double ns{};            ///< compute
};
/// A kernel (one of its queues of tiles) on a GPU. Begins when the simulation does.
struct Agent {
  Place place{};
  std::string name{};
  std::vector<AgentStep> steps{};
};

struct SimulateOptions {
  std::vector<Agent> agents{};
  trace::Recorder* recorder{};  ///< clock "virtual"; null: no trace
  bool contents = false;        ///< move the bytes too, and check the schedule's expectations
  std::uint64_t seed = 0;       ///< of contents
  double longest_ns = 1e12;     ///< what is not over then never ends
};

/// A part of the critical path.
struct PathStep {
  double begin_ns{}, end_ns{};  ///< from the beginning of the simulation
  Phase phase{};
  std::string where{};  ///< "host main", "gpu0 engine 14", "link gpu0->gpu1"
  std::string what{};   ///< "builds 7 packets of gpu0.b2b", "moves 64K", "waits for the poll of gpu0.b2b"
  friend bool operator==(const PathStep&, const PathStep&) = default;
};

/// A thing that can be busy.
struct Busy {
  enum class Kind : std::uint8_t { host, engine, link, memory, agent };
  Kind kind{};
  std::string name{};  ///< "host main", "gpu0 engine 14", "link gpu0->gpu1", "gpu0 memory"
  double busy_ns{};    ///< in the last round: a thread that does not wait, an engine with a packet, a link with bytes
  std::uint64_t bytes{};  ///< in the last round, across it
  double rate{};          ///< bytes/ns that it can; 0: no rate
};

struct Simulation {
  struct Round {
    double begin_ns{}, end_ns{};
  };
  double ns{};        ///< the last round
  double total_ns{};  ///< everything
  std::vector<Round> rounds{};
  std::array<double, kPhases> phase_ns{};  ///< of the last round; their sum is `ns`
  std::vector<PathStep> path{};            ///< of the last round, in order of time
  std::vector<Busy> busy{};                ///< what was used, by kind and name
  std::string bottleneck{};                ///< what the longest part of the path is spent on: one phrase
  std::uint64_t packets{}, bytes{}, doorbells{};
  std::vector<Diagnostic> findings{};  ///< expectations that fail, with `contents`
};

Result<Simulation, std::vector<Diagnostic>> simulate(const Schedule&, const MachineDescription&,
                                                     const SimulateOptions& = {});

/// What a result hangs on.
struct Sensitivity {
  struct Row {
    Cost cost{};
    double per_percent{};        ///< percent that the time grows by, for one percent more of the parameter
    double low_ns{}, high_ns{};  ///< the time with the parameter at either end of its uncertainty, ordered
  };
  double ns{}, uncertainty_ns{};  ///< of the time: the rows' deviations, taken as independent
  std::vector<Row> rows{};        ///< those that matter, most first
};
/// Simulates once for each end of each parameter.
Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule&, const MachineDescription&,
                                                         const SimulateOptions& = {});

}  // namespace v0
}  // namespace sdma
