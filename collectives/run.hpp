// SPDX-License-Identifier: MIT
#pragma once
// Runs a planned collective on a device, any number of times: fill, start, wait, check.
//
//   auto run = collectives::Run::prepare(*plan, device, {.gpus = {GpuId{2}, GpuId{5}}});  // binds or publishes a round
//   if (!run) for (const auto& d : run.error()) puts(to_string(d).c_str());
//   for (int i = 0; i < 20; ++i) {
//     run->fill(seed);                                       // inputs get a pattern, everything else poison
//     begin = now();
//     if (auto e = run->start(deadline); !e) ...             // off: submits all groups; prelaunch: stores the triggers
//     if (auto e = run->wait(deadline); !e) ...              // all completions of the round
//     end = now();
//     wrong += run->check().wrong;
//     if (more to come) run->refill(deadline);               // prelaunch: the next round, off the critical path
//   }
//
//   off        prepare                    start = submit        wait      refill: nothing
//   prelaunch  prepare = bind, submit     start = triggers      wait      refill = submit
//   stream     prepare = bind             start = submit, triggers        refill: nothing
//
// In the order of streams (Prelaunch::stream, Completion::fence), the host neither starts nor waits. Each GPU has a
// stream (sync/stream_order.hpp), and the collective is one more entry in it, as a kernel would be:
//
//   run->enqueue(g, calls[g], deadline);                    // for each g: an eager round, between two kernels
//
//   const auto graph = *run->graph(g, 20);                  // for each g: captured once
//   run->pass(g, calls[g], graph, i);                       // for each iteration, between two kernels
//   run->close(g, calls[g], graph);                         // at the end of the capture
//   run->publish(g, graph, deadline);                       // for each launch
//
// A group begins when the streams of all GPUs whose memory it touches are there, and these streams continue when it is
// complete. So a stream waits for its peers: enqueue on all before the host waits for one. All streams make the same
// calls in the same order, each GPU's from one thread at a time.
//
// If a stream can copy (StreamCalls::copy), it carries its GPU's part itself: the copies are in the stream. All
// streams of a Run do, or none. With Options::turns = 2, rounds take one of two buffers in turn, and no stream waits
// for its peers to read what they have (carried.cpp says why that is enough):
//
//   queues       kernel | write go | hold done = 7, 7                       | kernel       the rings do the rest
//   carried      kernel | write go | hold go's = 7 | copies | write done | hold done's = 7 | kernel
//   turns = 2    kernel |                            copies | write done | hold done's = 7 | kernel
//
// `refill` may publish several rounds ahead; each start releases one. Start all of them before the Run is destroyed: on
// the CUDA device, a queue that is destroyed while it waits leaves a stream that waits for ever, and slows the others
// (docs/silicon.md). Rounds are epochs: a round that does not fit in 32 bits is refused, and `restart` begins again.
//
// With several ranks (BindOptions::ranks), each fills, checks and submits what it has. Rank 0 also stores the triggers.
// All wait for all completions. Let all have filled and published before one starts; with Prelaunch::stream, let all
// have ended a round before one starts the next, and enqueue on the streams of one's own GPUs. A rank whose wait fails
// ends the waits of the others.
//
// Several Runs may share a device, with separate or shared engines; one thread at a time drives each. If the links have
// no atomics (Topology::completion), use fences.
// Errors: Diagnostics. If a wait times out, the error names each stalled queue and what it probably waits for. A fault
// of a queue ends the wait at once, and the error names the queue. After either, prepare a new Run. The device must
// outlive the Run.
#include "plan.hpp"
#include "sdma/schedule/bind.hpp"
#include "sdma/sync/stream_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collectives {

/// The result of a check.
struct [[nodiscard]] Check {
  std::uint64_t wrong{};  ///< bytes
  std::string first{};    ///< the first of them: "gpu3.buf[64K] is 0xdb (poison), not 0x07: part 2 of gpu2's"
  explicit operator bool() const noexcept { return wrong == 0; }
};

class Run {
 public:
  /// Binds the plan to a device; with prelaunch, also publishes the first round, for which its empty rings have room: a
  /// queue that does not take it within 10 s is an error. `words`: in place of the device's, those of stream_words,
  /// where a runtime asks for memory of its own kind. All are 0, and stay until the Run is destroyed.
  static sdma::Result<Run, std::vector<sdma::Diagnostic>> prepare(const Plan&, sdma::Device&,
                                                                  const sdma::BindOptions& = {},
                                                                  std::span<const sdma::Signal> words = {});
  /// How many words streams write and wait for: one per GPU, then one per queue.
  static std::size_t stream_words(const Plan& p) noexcept { return p.triggers.size() + p.completions.size(); }

  /// Fills each GPU's input with bytes that depend on the owner, the part and the seed. Everything else, guard bytes
  /// included, gets poison.
  void fill(std::uint64_t seed);
  /// Compares every byte of every buffer: moved parts with their pattern, everything else with its contents after fill.
  /// It skips the input of an all_to_all in place and the stage of an exchange, because the collective overwrites them.
  /// A fault of one of its queues also counts as wrong, because a completion after a fault may be false.
  Check check() const;

  sdma::Result<void, sdma::Diagnostic> start(sdma::Deadline);
  /// Releases this group (a queue of the schedule) before `start`. Requires Prelaunch::per_group.
  void trigger(std::size_t group) noexcept;
  sdma::Result<void, sdma::Diagnostic> wait(sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> refill(sdma::Deadline, std::uint32_t rounds = 1);
  /// Returns to epoch 0. Call it only after all published packets are complete.
  sdma::Result<void, sdma::Diagnostic> restart(sdma::Deadline);
  /// Runs start, wait and refill.
  sdma::Result<void, sdma::Diagnostic> once(sdma::Deadline);

  /// This GPU's part of the next round: publishes its packets, lets the streams' arrival release them, and holds its
  /// stream until all is complete that touches its memory. The first call has the stream try its words.
  sdma::Result<void, sdma::Diagnostic> enqueue(std::uint32_t gpu, const sdma::StreamCalls&, sdma::Deadline);
  /// Publishes this GPU's packets for one replay of a graph.
  sdma::Result<void, sdma::Diagnostic> publish(std::uint32_t gpu, const sdma::StreamGraph&, sdma::Deadline);
  /// The words and rounds of a GPU's stream; without words if nothing touches its memory. Requires Prelaunch::stream.
  sdma::StreamOrder& stream(std::uint32_t gpu) noexcept { return streams_[gpu].order; }
  /// A graph of so many rounds of a GPU's stream. Errors: no round, or an odd number of them with two turns; the values
  /// are used up.
  sdma::Result<sdma::StreamGraph, sdma::Diagnostic> graph(std::uint32_t gpu, std::uint32_t rounds);
  /// Round `i` of a graph, 0 to iterations - 1 in order: what the captured stream does for it.
  sdma::Result<void, sdma::Diagnostic> pass(std::uint32_t gpu, const sdma::StreamCalls&, const sdma::StreamGraph&,
                                            std::uint32_t i);
  /// The end of the capture: what keeps a short graph's replays apart.
  sdma::Result<void, sdma::Diagnostic> close(std::uint32_t gpu, const sdma::StreamCalls&, const sdma::StreamGraph&);
  /// The words that have the value of a round once it is complete for this GPU, which carries it: `round` counts eager
  /// ones from 0, or those of a graph.
  std::vector<sdma::GpuVa> carried_words(std::uint32_t gpu, std::uint64_t round) const;
  /// How many rounds a graph has with those that `close` adds.
  std::uint32_t rounds_of(const sdma::StreamGraph& g) const noexcept {
    const auto turns = plan_.options.turns;
    return turns == 1 ? g.rounds() : std::max(g.iterations, 2 * turns);
  }
  /// Where the data of this GPU's next eager round is, in bytes after that of turn 0. Round i of a graph has turn
  /// i % 2.
  std::uint64_t offset_of_turn(std::uint32_t gpu) const noexcept { return turn_of(streams_[gpu].rounds) * stride(); }

  const Plan& plan() const noexcept { return plan_; }
  const sdma::Bound& bound() const noexcept { return bound_; }
  /// Does `start` of this rank begin something, or does it only count the round?
  bool starts() const noexcept;
  std::uint64_t round() const noexcept { return round_; }  ///< the last started round, from 1
  /// The rounds that are published and not started.
  std::uint64_t ahead() const noexcept;

 private:
  Run(Plan plan, sdma::Bound bound) noexcept : plan_(std::move(plan)), bound_(std::move(bound)) {}
  /// What a GPU's stream takes part in.
  struct Lane {
    std::vector<sdma::GpuVa> done{};
    sdma::StreamOrder order{{}, {}};
    std::vector<std::size_t> queues{};  ///< that its calls publish
    bool tried = false;                 ///< the stream has been seen to take the words
    std::uint64_t rounds = 0;           ///< eager ones that it has carried
    bool carries = false;
  };
  /// What a GPU's stream does in a round that it carries.
  struct Carried {
    struct Piece {
      sdma::GpuVa to{}, from{};
      std::uint64_t bytes{};
    };
    std::vector<Piece> copies{};
    using Words = std::array<sdma::GpuVa, 2>;  ///< of each turn; with one turn: "here", and "done"
    Words words{};
    std::vector<sdma::GpuVa> reached{};  ///< "here" of the GPUs whose memory its copies touch
    std::vector<Words> reached_by{};     ///< of the GPUs whose copies touch its memory
  };

  sdma::Result<void, sdma::Diagnostic> publish(sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> published(std::size_t queue, sdma::Errc) const;
  sdma::Result<void, sdma::Diagnostic> publish_value(std::uint32_t gpu, std::uint32_t value, sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> publish_empty(std::size_t queue, std::uint32_t value, sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> streamed(std::uint32_t gpu, const char* what) const;
  sdma::Diagnostic refused(std::uint32_t gpu, const sdma::StreamRefusal&) const;
  void make_streams();
  void make_carried();
  sdma::Result<void, sdma::Diagnostic> carry(std::uint32_t gpu, const sdma::StreamCalls&, std::uint32_t value,
                                             std::uint64_t round, bool copies);
  std::uint64_t turn_of(std::uint64_t round) const noexcept { return round % plan_.options.turns; }
  /// Which of Carried::words says that the copies of a round are done.
  std::uint64_t done_of(std::uint64_t round) const noexcept { return plan_.options.turns == 1 ? 1 : turn_of(round); }
  std::uint64_t stride() const noexcept { return plan_.options.turns == 1 ? 0 : turn_bytes(plan_.options); }
  sdma::Result<void, sdma::Diagnostic> completed(sdma::Deadline) const;
  bool releases() const noexcept;
  std::optional<std::size_t> own_queue() const noexcept;
  sdma::Diagnostic standing(std::size_t completion, std::uint64_t wanted) const;
  std::optional<sdma::Diagnostic> fault() const;
  std::string queue_name(std::size_t) const;
  void flush() const noexcept;  // between the host's and the engines' accesses to GPU memory

  Plan plan_;
  sdma::Bound bound_;
  std::vector<sdma::GpuId> gpus_{};
  std::vector<std::size_t> triggers_{}, completions_{};  // indices of the schedule's signals
  std::vector<Lane> streams_{};
  std::vector<Carried> carried_{};
  std::string not_carried_{};  ///< why streams cannot carry this plan; "": they can
  std::uint64_t round_ = 0, seed_ = 0;
  std::uint64_t value_ = 0;  ///< of the words of the last started round
};

}  // namespace collectives
