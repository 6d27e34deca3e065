// SPDX-License-Identifier: MIT
#pragma once
// The turns of several processes: the Baton of one of them has the turn, and a seed says whose is next. Internal.
//
//   auto memory = Conductor::shared(4);             // before the processes are forked; null: no memory
//   // in process r:
//   Conductor::Seat seat{*memory, r, over};         // over(): is the time of this process up?
//   seat.join(seed);                                // of process 0; begins when all have joined
//   for (auto t = seat.comes(); t is not the end; t = seat.comes()) { act; seat.pass(what came of it); }
//
//   act     an agent of this process may act. A process in which none can is left out until some agent has acted
//   wake    no agent of any process can act: of those that sleep, the one with the lowest rank is here, and wakes
//   stuck   nor does any sleep: this process may ask whether the run is over
//   over    the threads of all processes have ended. In one run of two, what can still happen happens before
//   alone   a process has ended or its time is up: there are no more turns, and each goes on by itself
//
// The same seed gives the same sequence of turns if what the processes do depends on their turns alone. A process that
// has the turn may do anything, so its stores are seen by the next. The memory may be used for many runs, one after
// another; each process joins in each. A Seat belongs to one thread. No errors.
#include "chooser.hpp"
#include "park.hpp"
#include "sdma/core/deadline.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

class Conductor {
 public:
  static constexpr std::uint32_t kMost = 64;  ///< processes
  struct Unmap {
    void operator()(Conductor*) const noexcept;
  };
  static std::unique_ptr<Conductor, Unmap> shared(std::uint32_t processes) noexcept;

  enum class Turn : std::uint8_t { act, wake, stuck, over, alone };
  /// What came of a turn.
  struct Outcome {
    bool acted{};          ///< an agent has acted, or has woken
    std::uint32_t rank{};  ///< of the first that would wake here; 0: none sleeps
    bool ended{};          ///< all threads of this process have ended
  };

  class Seat {
   public:
    Seat(Conductor& c, std::uint32_t process, std::function<bool()> over)
        : c_(&c), process_(process), over_(std::move(over)) {}
    void join(std::uint64_t seed) noexcept;
    /// Waits for this process's turn.
    Turn comes();
    void pass(const Outcome&) noexcept;

   private:
    bool lost() const noexcept;
    Conductor* c_;
    std::uint32_t process_;
    std::function<bool()> over_;
    std::uint32_t run_ = 0;
  };

 private:
  explicit Conductor(std::uint32_t processes) noexcept : processes_(processes) {}
  /// The turn goes to one of these processes.
  void give(std::uint64_t among, Turn) noexcept;
  /// Where the first sleeper would wake; nothing if none sleeps.
  std::optional<std::uint32_t> next_to_wake() const noexcept;
  void set(std::uint32_t process, Turn) noexcept;
  std::uint64_t all() const noexcept { return ~std::uint64_t{} >> (kMost - processes_); }

  const std::uint32_t processes_;
  std::atomic<std::uint64_t> joined_{0};
  std::atomic<bool> broken_{false};
  /// Whose turn it is.
  struct alignas(8) Given {  // so that no compiler calls a library for it
    std::uint32_t run{};
    std::uint16_t process{};
    Turn turn{};
    std::uint8_t unused{};
  };
  static_assert(std::atomic<Given>::is_always_lock_free);
  std::atomic<Given> given_{Given{}};
  std::array<BasicParking<0>, kMost> waiting_{};
  std::array<std::atomic<pid_t>, kMost> ids_{};  ///< of the processes that have joined
  // Of the process that has the turn.
  std::uint64_t idle_ = 0, ended_ = 0, seed_ = 0;
  std::uint32_t run_ = 0;
  std::array<std::uint32_t, kMost> ranks_{};
  bool to_the_end_ = false;
  Seeded order_{0};
};

}}}  // namespace sdma::v0_3::detail
