// SPDX-License-Identifier: MIT
#pragma once
// One agent of a run acts at a time, and a seed says which: queues, host threads and kernels take turns. Internal.
//
//   Baton baton{seed, queues, threads};             // the queues' owner no longer serves them by itself
//   // each thread i:
//   Baton::Hand hand{baton, i};                     // waits for the first turn; its destructor ends the thread's part
//   hand.pass();                                    // before each action: others may go first, perhaps all of them
//   hand.until([&] { return word == 1; });          // others go until this holds
//   // the thread that has made the baton:
//   baton.run([&] { return stopped; });             // until all threads have ended their parts
//
//   turn of a queue    one action of its pipeline: a packet starts, or an effect lands
//   turn of a thread   one action of the schedule
//   asleep             no turn until no other agent can act; then the sleeper with the lowest rank wakes. A thread
//                      falls asleep before one in two of its first actions, and more rarely later
//
// When the last thread has ended, what is still in flight stays there in one run of two; in the others, all of it
// lands.
//
// Time is virtual: it passes with turns. So the same seed gives the same run, whatever else the machine does, and a nap
// is as long as it has to be to show a race. If no agent can act and none sleeps, the run is stuck: `run` then
// asks its argument from time to time, and once that is true, every wait ends.
//
// A thread calls only the functions of its own Hand; `run` and the agents' functions run on the thread that made the
// baton. At most one thread at a time is not waiting here, so what they share needs no further lock. Errors: what
// std::thread and the allocator throw, from the constructor.
//
// With a Seat, the run is a part of one: the batons of several processes act in turn (conductor.hpp), and `run` returns
// when the threads of all have ended.
#include "conductor.hpp"
#include "sleepiness.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class Baton {
 public:
  /// A queue. While it sleeps, a step starts no packet.
  class Agent {
   public:
    virtual ~Agent() = default;
    virtual bool step() noexcept = 0;  ///< one action; false: none is possible
    virtual bool asleep() noexcept = 0;
    virtual void awaken() noexcept = 0;
    /// Asked once for each nap: does it wake after all others that have not answered so?
    virtual bool wakes_last() noexcept { return false; }
  };

  Baton(std::uint64_t seed, std::vector<std::unique_ptr<Agent>> queues, std::size_t threads,
        std::optional<Conductor::Seat> seat = {});
  Baton(const Baton&) = delete;
  Baton& operator=(const Baton&) = delete;

  /// Returns when each thread has had a Hand and has destroyed it, or was `missing`.
  void run(const std::function<bool()>& over);
  /// This thread has not been started.
  void missing(std::size_t thread);

  class Hand {
   public:
    Hand(Baton&, std::size_t thread);
    ~Hand();
    Hand(const Hand&) = delete;
    Hand& operator=(const Hand&) = delete;
    /// May fall asleep.
    void pass();
    /// Others go first for a while, which the seed determines.
    void linger();
    /// Returns when `ready` is true or every wait has ended. `ready` runs on the thread of `run`.
    void until(const std::function<bool()>& ready);
    /// Have all waits ended?
    bool ending() const noexcept { return baton_.ending_; }

   private:
    friend Baton;
    Baton& baton_;
    std::size_t index_;
    Hand* outer_;
  };
  /// The Hand of the calling thread; null if it has none.
  static Hand* held() noexcept;

 private:
  enum class State : std::uint8_t { starting, ready, waiting, asleep, ended };
  struct Thread {
    Thread(std::uint64_t seed, std::uint64_t stream) noexcept : sleepiness(seed, stream, nullptr, 1) {}
    State state = State::starting;
    const std::function<bool()>* ready = nullptr;
    Sleepiness sleepiness;
    std::condition_variable turn{};
  };
  static constexpr std::size_t kNobody = ~std::size_t{};

  /// Gives the thread a turn, and waits until it has ended.
  bool go(std::size_t thread);
  /// Ends the turn of this thread, and waits for the next one.
  void give(std::size_t thread, State);
  bool ended() const;
  /// One action of an agent; false: none is possible.
  bool act();
  bool step(std::size_t agent);
  bool wake_next();
  bool asleep(std::size_t agent) const;
  /// The agent that wakes next; all of them: none sleeps.
  std::size_t first_sleeper();
  void look(const std::function<bool()>& over);
  /// The same with a Seat.
  void run_in_turn(const std::function<bool()>& over);
  Conductor::Outcome take(Conductor::Turn, const std::function<bool()>& over);

  const std::vector<std::unique_ptr<Agent>> queues_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::uint32_t> ranks_;  ///< of the present naps: queues, then threads; 0: none
  Seeded order_, ranks_of_naps_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::size_t holder_ = kNobody;  ///< the thread whose turn it is
  bool ending_ = false;
  std::optional<Conductor::Seat> seat_;
};

}}}  // namespace sdma::v0_3::detail
