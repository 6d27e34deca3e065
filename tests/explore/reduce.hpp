// SPDX-License-Identifier: MIT
#pragma once
// Chooses the steps that a search has to try in a state: a persistent set.
//
//   Reduction r{machine};
//   r.choose(state, steps);      a subset of all possible steps, empty only if none is possible
//
// A schedule with kernels is searched whole.
//
// An agent is the front end of a queue, its landings, its moves, or a host. The set of agents is closed: an agent
// outside can neither change what the next step of an agent inside does, nor make it possible. So every deadlock, every
// end, every race and every pending store that the whole search finds is found by the reduced one.
#include "machine.hpp"

namespace sdma::explore {

class Reduction {
 public:
  explicit Reduction(const Machine& m) : m_(m), p_(m.program()) {}
  void choose(Machine::Const, std::vector<Step>& out);

 private:
  // Agents, as bits: front ends, landings, moves, hosts.
  static constexpr std::size_t kLand = kMostQueues, kMove = 2 * kMostQueues, kHost = 3 * kMostQueues,
                               kAgents = kHost + kMostHosts;
  static constexpr std::uint64_t one(std::size_t a) noexcept { return std::uint64_t{1} << a; }

  void futures(Machine::Const);
  std::uint64_t needs(Machine::Const, std::size_t agent) const;
  std::uint64_t needs_front(Machine::Const, std::size_t q) const;
  std::uint64_t needs_landings(Machine::Const, std::size_t q) const;
  std::uint64_t needs_moves(Machine::Const, std::size_t q) const;
  std::uint64_t needs_host(Machine::Const, std::size_t h) const;
  std::uint64_t completes(std::size_t q, std::uint64_t data) const;
  std::uint64_t races_with(Mask reads, Mask writes) const;
  std::uint64_t writers(Mask) const;
  std::uint64_t users(Mask) const;
  std::uint64_t fronts_that_hold(std::size_t q) const;
  template <class Fn> void steps_of(Machine::Const s, std::size_t agent, Fn&& fn) const {
    if (agent < kLand) m_.front_steps(s, agent, fn);
    else if (agent < kMove) m_.landings(s, agent - kLand, fn);
    else if (agent < kHost) m_.moves(s, agent - kMove, fn);
    else m_.host_steps(s, agent - kHost, fn);
  }

  const Machine& m_;
  const Program& p_;
  /// What each agent may still do.
  struct Future {
    Mask reads{}, writes{}, data_reads{}, data_writes{};
    bool alive{};
  };
  std::array<Future, kAgents> future_{};
  std::uint64_t hosts_ = 0;  ///< those that have not ended
};

}  // namespace sdma::explore
