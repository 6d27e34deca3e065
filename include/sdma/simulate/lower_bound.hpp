// SPDX-License-Identifier: MIT
#pragma once
// The least time that any schedule with the same result needs on a machine: what its bytes take through the narrowest
// cut, and what the longest way takes without bytes. `sdma simulate` and `sdma explore` print a schedule's distance
// from it.
//
//   auto t = simulate(schedule, *m);
//   if (auto least = lower_bound(schedule, *m))
//     if (auto times = times_of(*least, *t)) puts(to_text(*least, *times).c_str());
//   // 6.71 us (cut: 56K into gpu0 at 338 GB/s, beside 6.54 us of latency): this is 1.29 times that
//
// What has to move follows from the expectations: each range that has to hold what random memory of another place held
// before the run, or a sum of such ranges. Three things are computed.
//
//   cuts      into and out of each GPU, each node, the host, and each run of GPUs with consecutive numbers (up to 32
//             GPUs): the bytes that have to cross, each once however many GPUs beyond the cut need it, at the rate of
//             all links that cross together, less what they share
//   latency   of the machine's parameters: a doorbell and a fetch (or a trigger), a packet, its landing, its release,
//             a thread that notices; with sums, also a kernel that sees the bytes
//   way       the longest of the shortest ways from a source to its destination: for each copy on it, a packet, its
//             landing and its release. That the next engine sees the word costs nothing: a poll may come just in time
//
// A cut takes its latency and then its bytes; the bound is the largest of all. It assumes that engines, or the
// network, move the bytes, of which none has moved before the round begins; that they go through the host's memory
// only if the schedule's do so; that engines are never what is full; and that host threads wait for all of it. If
// kernels or host threads move bytes to other places themselves, the latency is 0. It is not reached wherever these are
// too generous.
//
// Nothing is known, and so there is no bound, for a schedule without such expectations, of several rounds
// (Simulation::rounds), or whose bytes have no way. A cut that a link of unknown rate crosses is left out.
// Pure functions that allocate. No errors.
#include "sdma/simulate/simulate.hpp"

#include <optional>
#include <string>

namespace sdma { inline namespace v0_3 {

/// The least time for what a schedule has to move.
struct LowerBound {
  double ns{};            ///< no schedule takes less
  double latency_ns{};    ///< of this, what does not depend on the number of bytes
  std::uint32_t hops{};   ///< copies in a row on the longest way
  std::string cut{};      ///< "into gpu3", "out of node 1"; empty: the longest way decides
  std::uint64_t bytes{};  ///< that cross the cut
  double rate{};          ///< of all links that cross it together, in bytes/ns
};
/// The bound of one run of the schedule; nothing if its expectations do not say what has to move.
std::optional<LowerBound> lower_bound(const Schedule&, const MachineDescription&);
/// How many times the bound a run takes, until the last byte and word are there; nothing if it had several rounds, or
/// if it takes less, because it is not what the bound assumes.
std::optional<double> times_of(const LowerBound&, const Simulation&);
/// "6.71 us (cut: 56K into gpu0 at 338 GB/s, beside 6.54 us of latency): this is 1.29 times that".
std::string to_text(const LowerBound&, double times);

}}  // namespace sdma::v0_3
