// SPDX-License-Identifier: MIT
#pragma once
// Compares two traces of one schedule, queue by queue: where a simulation differs from a measured run, and by how much.
//
//   const auto c = compare({"run.jsonl", run}, {"model.jsonl", model});
//   if (!c) ...                                           // a trace without packets, or traces of different schedules
//   fputs(to_table(*c).c_str(), stdout);
//   c->run.error()   ==   -12.5                           // the simulated run takes 12.5 % less time
//
//   measured    D   [poll.....][copy........] [copy..........]  [atomic]
//   phase        sch wait       copy           copy              sync          sch: schedule; between packets: rest
//   simulated   D  [poll...][copy.....]
//                            [copy.........][atomic]
//   phase        sc wait     copy           sync
//
// Queues: lanes whose name begins with "engine N" are queues. Two queues are compared if their group and name are
// equal. One trace may label a queue by name and the other by number: of the other queues, the n-th of an engine in one
// trace is compared with the n-th in the other.
//
// Rounds: the last round of each queue is compared: what its last doorbell published or, if the trace has no
// doorbells, all packets. (On hardware, a trace covers only the last round.) Simulations of version 1 have doorbells
// in the lane of the host thread; they belong to the queue in which the submitted packets run. A submit that does not
// fit its ring rings several times, and an engine may notice two doorbells at once: if one trace has fewer packets,
// its earlier doorbells are added until the numbers are equal. If they never are, only what the last doorbells
// published is compared.
//
// Packets: the packets of a round are compared in order, from its beginning and from its end, up to the first
// packets of different kinds. What lies between has no counterpart. NOPs are not compared, because the padding of a
// ring consists of them, nor are the packets of an indirect buffer, which only a simulation records: they belong to
// their INDIRECT.
//
// Times are in ns from the origin of each trace: the first of the moments of Origin that both traces have. A phase
// contains no time before the origin, and each moment until the queue's end belongs to one QueuePhase. If a queue
// begins before the origin, it has no `schedule`.
//
// What has no counterpart is listed in `differences`, never left out silently. The functions are pure and
// allocate; any thread may call them. Errors: a Diagnostic names the trace, and says what to do. A Trace must be
// as write.hpp requires.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace {

/// A trace, and its name in messages: its file.
struct NamedTrace {
  std::string_view name{};  ///< in messages: its file
  const Trace& trace;       ///< not owned
};

/// The same time in both traces, in ns.
struct TimePair {
  double measured{}, other{};  ///< in the measured trace, and in the other
  /// By how many percent of the measured time the other differs; nothing if only the measured time is 0.
  std::optional<double> error() const noexcept;
  friend bool operator==(const TimePair&, const TimePair&) = default;
};

/// The moment at which both traces begin to count.
/// `trigger`: a host thread's first store after the last doorbell, if a packet ends after it; `doorbell`: the earliest
/// doorbell of the compared rounds; `packet`: the begin of the first compared packet.
enum class Origin : std::uint8_t { trigger, doorbell, packet };
std::string_view name(Origin) noexcept;

/// What a queue does. `schedule`: nothing has begun; `copy`: data is in flight; else `sync`: a fence, atomic, trap or
/// timestamp is; else `wait`: a poll is; else `rest`.
enum class QueuePhase : std::uint8_t { schedule, wait, copy, sync, rest };
inline constexpr std::size_t kQueuePhases = 5;  ///< the number of enumerators of QueuePhase
/// "schedule", ...
std::string_view name(QueuePhase) noexcept;

/// A queue that both traces have.
struct ComparedQueue {
  Lane measured{}, other{};                     ///< as each trace names it
  std::size_t packets{};                        ///< how many packets have a counterpart; the times are theirs
  TimePair begin{}, end{};                      ///< of its first compared packet, of its last
  std::array<TimePair, kQueuePhases> phases{};  ///< indexed by QueuePhase; from the origin to `end`
};

/// What `compare` found. Times are in ns.
struct Comparison {
  Origin origin{};                      ///< where both count from
  TimePair run{};                       ///< from the origin to the end of the last compared packet
  std::vector<ComparedQueue> queues{};  ///< in the order of the measured trace
  std::vector<Diagnostic>
      differences{};  ///< queues and packets without a counterpart, packets without an end, lost events
};

Result<Comparison, Diagnostic> compare(const NamedTrace& measured, const NamedTrace& other);

/// For people. `other`: what the column of the other trace is called. Ends with a newline.
std::string to_table(const Comparison&, std::string_view other = "simulated");
/// {"origin":.., "run":{"measured_ns":.., "simulated_ns":.., "error_percent":..}, "queues":[..], "differences":[..]}
std::string to_json(const Comparison&, std::string_view other = "simulated");

}}}  // namespace sdma::v0_3::trace
