#pragma once
// A planned collective on a device: fill, start, wait, check, again and again.
//
//   auto run = collectives::Run::prepare(*plan, device, {.gpus = {GpuId{2}, GpuId{5}}});   // binds; prelaunch: publishes a round
//   if (!run) for (const auto& d : run.error()) puts(to_string(d).c_str());
//   for (int i = 0; i < 20; ++i) {
//     run->fill(seed);                                       // inputs by pattern, everything else poison
//     begin = now();
//     if (auto e = run->start(deadline); !e) ...             // off: submits all groups; prelaunch: stores the triggers
//     if (auto e = run->wait(deadline); !e) ...              // all completions of the round
//     end = now();
//     wrong += run->check().wrong;
//     run->refill(deadline);                                 // prelaunch: the next round, off the critical path
//   }
//
//   off        prepare                    start = submit        wait      refill: nothing
//   prelaunch  prepare = bind, submit     start = triggers      wait      refill = submit
//
// `refill` may publish several rounds ahead; each start lets one go. Rounds are epochs: what does not fit in 32 bits any more
// is refused, and `restart` begins again.
//
// Several Runs may live on one device (on engines of their own, or sharing them), each driven by a thread at a time. Where the
// links have no atomics (Topology::completion) ask for fences.
// Errors: Diagnostics. A wait that does not end names each queue that stands and what it probably waits for; a fault of a
// queue ends the wait at once and names the queue. After either, prepare a new Run. The device outlives it.
#include "plan.hpp"
#include "sdma/schedule/bind.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collectives {

/// What a check has found.
struct [[nodiscard]] Check {
  std::uint64_t wrong{};  ///< bytes
  std::string first{};    ///< the first of them: "gpu3.buf[64K] is 0xdb (poison), not 0x07: part 2 of gpu2's"
  explicit operator bool() const noexcept { return wrong == 0; }
};

class Run {
 public:
  static sdma::Result<Run, std::vector<sdma::Diagnostic>> prepare(const Plan&, sdma::Device&,
                                                                  const sdma::BindOptions& = {});

  /// Each GPU's input: bytes that differ by owner, part and seed. All else, guard bytes too: poison.
  void fill(std::uint64_t seed);
  /// Compares every byte of every buffer: moved parts with their pattern, all else with what it held after fill. The input
  /// of an all_to_all in place, and the stage of an exchange, are what the collective uses up.
  /// A fault of one of its queues is wrong, too: after one a completion may be seen that is none.
  Check check() const;

  sdma::Result<void, sdma::Diagnostic> start(sdma::Deadline);
  /// Prelaunch::per_group: lets this group (a queue of the schedule) go ahead of `start`. Requires a trigger a group.
  void trigger(std::size_t group) noexcept;
  sdma::Result<void, sdma::Diagnostic> wait(sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> refill(sdma::Deadline, std::uint32_t rounds = 1);
  /// Epoch 0 again, when everything published has run.
  sdma::Result<void, sdma::Diagnostic> restart(sdma::Deadline);
  /// start, wait, refill.
  sdma::Result<void, sdma::Diagnostic> once(sdma::Deadline);

  const Plan& plan() const noexcept { return plan_; }
  const sdma::Bound& bound() const noexcept { return bound_; }
  std::uint64_t round() const noexcept { return round_; }  ///< that was started last, from 1

 private:
  Run(Plan plan, sdma::Bound bound) noexcept : plan_(std::move(plan)), bound_(std::move(bound)) {}
  sdma::Result<void, sdma::Diagnostic> publish(sdma::Deadline);
  sdma::Diagnostic standing(std::size_t completion, std::uint64_t wanted) const;
  std::optional<sdma::Diagnostic> fault() const;
  std::string queue_name(std::size_t) const;
  void flush() const noexcept;  // between the host's and the engines' looks at GPU memory

  Plan plan_;
  sdma::Bound bound_;
  std::vector<sdma::GpuId> gpus_{};
  std::vector<std::size_t> triggers_{}, completions_{};  // of the schedule's signals
  std::uint64_t round_ = 0, seed_ = 0;
};

}  // namespace collectives
