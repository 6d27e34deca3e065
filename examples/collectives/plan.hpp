#pragma once
// The schedule of a collective: Options in, sdma::Schedule out, and what it had to do differently.
//
//   auto p = collectives::plan({.collective = Collective::all_to_all, .variant = Variant::swap, .gpus = 8, .bytes = 1 << 20});
//   if (!p) return fail(to_string(p.error()));
//   for (const auto& note : p->notes) puts(note.c_str());       // "swap cannot take gpu1's offset 4 ...: copies instead"
//   puts(sdma::to_text(p->schedule).c_str());                   // run it, diff it, check it: sdma run, sdma check
//   collectives::Run::prepare(*p, device);                      // run.hpp
//
//   buffers    gpu{i}.buf            in place; or gpu{i}.in and gpu{i}.out of an all_to_all that is not
//   signals    host.go, host.done    or one a group, go{i}_{k} and done{i}_{k}: the number of rounds, growing
//   queues     gpu{i}.{variant}{k}   a command group each: [poll go >= epoch] data, completion
//   host main  epochs: submit, set, wait; and an expectation for each part that moves
//
// Fallbacks. A broadcast packet wants both destinations equal modulo 32, a swap both addresses at a multiple of 64. Where the
// buffers' offsets or the parts' lengths deny that, the schedule uses what can, and `notes` has a sentence for it:
//
//   bcst   peers are paired with others that are equal modulo 32; who finds none gets a copy of its own
//   swap   the multiples of 64 in the middle are swapped where both sides begin alike; edges, or all, are exchanged by three
//          copies through a stage on the driving GPU, each behind a full barrier; what one side has more is copied
//
// Plain values that allocate; any thread. Errors: one Diagnostic (refusal of options.hpp); a plan has no problems().
#include "options.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace collectives {

/// What a GPU is asked to do in a round.
struct Counts {
  std::uint32_t data{};         ///< copy, broadcast and swap packets
  std::uint32_t completions{};  ///< atomics and fences; those of barriers are not counted
  std::uint32_t doorbells{};    ///< groups: a doorbell each
  std::uint32_t polls{};        ///< for triggers
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Bytes of the source GPU's input that the destination has at the end. What stays where it is, is none.
struct Move {
  std::uint32_t src{}, dst{};  ///< GPUs
  sdma::GpuVa from{}, to{};    ///< link space
  std::uint64_t bytes{};
};

struct Plan {
  Options options{};  ///< as asked, but for `variant`, which is never automatic
  sdma::Schedule schedule{};
  std::vector<std::string> notes{};  ///< fallbacks; empty: everything as asked
  std::vector<Counts> counts{};      ///< a GPU each
  std::vector<Move> moves{};
  std::vector<sdma::Schedule::Range> given{};  ///< what GPUs hold before: the parts that are input, link space
  std::vector<sdma::GpuVa> inputs{},
      outputs{};                           ///< where data begins, a GPU each, link space; equal where it is in place
  std::vector<sdma::GpuVa> triggers{};     ///< none, one, or one a queue (in the order of the schedule's queues)
  std::vector<sdma::GpuVa> completions{};  ///< one, or one a queue
  std::uint64_t done_a_round{};            ///< what a round adds to completions[0], or 1 where there are many
};

sdma::Result<Plan, sdma::Diagnostic> plan(const Options&);

/// Bytes over the busiest GPU's links for each byte of S, as the benchmarks of RCCL have it: busbw = algbw * factor.
/// all_gather, all_to_all, scatter, gather: (N - 1) / N; broadcast: 1.
double bus_factor(Collective, std::uint32_t gpus) noexcept;

}  // namespace collectives
