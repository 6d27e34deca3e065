// SPDX-License-Identifier: MIT
#pragma once
// The schedule of a collective: Options in, sdma::Schedule out, with notes about fallbacks. It is read from one of the
// texts of share/sdma/collectives, whose params are the options (source.hpp).
//
//   auto p = collectives::plan({.collective = Collective::all_to_all, .variant = Variant::swap, .bytes = 1 << 20});
//   if (!p) return fail(to_string(p.error()));
//   for (const auto& note : p->notes) puts(note.c_str());     // "swap cannot take gpu1's offset 4 ...: copies instead"
//   puts(sdma::to_text(p->schedule).c_str());                 // run it, diff it, check it: sdma run, sdma check
//   collectives::Run::prepare(*p, device);                      // run.hpp
//
//   buffers    gpu{i}.buf            in place; gpu{i}.in and gpu{i}.out for an alltoallv, and for an
//                                    all_to_all out of place
//   signals    host.go, host.done    or one per group, go{i}_{k} and done{i}_{k}: the number of rounds, growing
//   queues     gpu{i}.{variant}{k}   one command group each: [poll go >= epoch] data, completion
//   host main  epochs: submit, set, wait; and an expectation for each part that moves
//
// Fallbacks. A broadcast packet needs destinations that are equal modulo 32; a swap needs both addresses to be
// multiples of 64. If the buffers' offsets or the parts' lengths do not allow that, the schedule uses other packets,
// and `notes` says so:
//
//   bcst   peers are paired if they are equal modulo 32; a peer without a partner gets a copy of its own
//   swap   the multiples of 64 in the middle are swapped if both sides are equal modulo 64. The edges, or everything,
//          are exchanged by three copies through a stage on the driving GPU, each after a full barrier. The excess of
//          the longer side is copied
//
// Plans are plain values that allocate; any thread may use them. Errors: one Diagnostic (`refusal` in options.hpp). A
// plan has no problems().
#include "options.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace collectives {

/// The work of one GPU in one round.
struct Counts {
  std::uint32_t data{};         ///< copy, broadcast and swap packets
  std::uint32_t completions{};  ///< atomics and fences, without those of barriers
  std::uint32_t doorbells{};    ///< one per group
  std::uint32_t polls{};        ///< for triggers
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Bytes of the source GPU's input that the destination has at the end. Bytes that stay in place are not a move.
struct Move {
  std::uint32_t src{}, dst{};  ///< GPUs
  sdma::GpuVa from{}, to{};    ///< link space
  std::uint64_t bytes{};
};

struct Plan {
  Options options{};  ///< as requested, except `variant`, which is never automatic
  sdma::Schedule schedule{};
  std::vector<std::string> notes{};  ///< fallbacks; empty: everything is as requested
  std::vector<Counts> counts{};      ///< one per GPU
  std::vector<Move> moves{};
  std::vector<sdma::Schedule::Range> given{};    ///< the parts that are input, link space
  std::vector<sdma::GpuVa> inputs{}, outputs{};  ///< where data begins, one per GPU, link space; equal if in place
  std::vector<sdma::GpuVa> triggers{};           ///< none, one, one per queue (in their order), or one per GPU
  std::vector<sdma::GpuVa> completions{};        ///< one, or one per queue
  std::uint64_t done_a_round{};                  ///< what a round adds to completions[0]; 1 if there are several
};

sdma::Result<Plan, sdma::Diagnostic> plan(const Options&);

/// How many bytes cross the links of the busiest GPU for each byte of S, as in the benchmarks of RCCL: busbw = algbw *
/// factor. all_gather, all_to_all, scatter, gather: (N - 1) / N; broadcast: 1; alltoallv: the most that a GPU sends to
/// or receives from others, for each byte of S.
double bus_factor(const Options&);

}  // namespace collectives
