// SPDX-License-Identifier: MIT
#pragma once
// The processes that have bound one schedule together: who has what, and how they keep step. Internal.
//
//   Ranks ranks{schedule, 4};                  // pure: ranks.of(place), ranks.of_actor(i), ranks.of(action, actor)
//   Team team{ranks, mine, actors, device};    // team.join(rank, the page of its words)
//   team.barrier(deadline, stopped)            // returns when all ranks have called it as often
//   Turn turn{team, actor};  turn.begin(ranks, deadline, stopped) ... turn.end(ranks)        the ranks of an action
//
//   words of a rank's page    barriers reached | 1: it has stopped the run | for each actor: its last step
//
// A host thread or a kernel is one thread of the schedule, and each rank has a thread for it. An action takes place in
// the ranks that it concerns: a submit in those of its queues, any other in the actor's own. All ranks count the same
// actions, so each knows without a message what comes before its part: the actions of other ranks whose steps it
// waits for. So the order is that of the text. An actor all of whose actions concern its own rank waits for nothing.
//
// Ranks of another node share no memory with this one: `near` is false for what they have. Here are copies of their
// pages. A store to one of the first two words of a page goes to them by the NetworkThread. No actor has actions in two
// nodes, so the other words need not cross.
//
// A Turn belongs to one thread; the rest is thread-safe. Waits end early if a rank has ended or stopped: `lost`.
#include "network_thread.hpp"
#include "refused.hpp"
#include "sdma/sync/wait.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail {

/// How long a thread waits before it looks whether the run has been stopped.
inline constexpr std::chrono::milliseconds kLook{20};

/// Which rank has what. GPUs and host threads are divided evenly, in order; what is the host's is of rank 0, or of the
/// first rank of the node that uses it.
struct Ranks {
  const Schedule& schedule;
  std::uint32_t count = 1;
  NodeSizes per_node{};
  NodeMap nodes{};  ///< of several

  std::uint32_t node(std::uint32_t rank) const noexcept { return per_node.of(rank); }
  std::uint32_t of(Place p) const noexcept { return p.is_host() ? 0 : p.index * count / std::max(schedule.gpus, 1u); }
  /// Of a buffer or a signal: that of the memory to which it leads.
  std::uint32_t of(const SymbolOffset& l) const noexcept {
    const auto to = find_symbol(schedule, resolve(schedule, link_address(l)));
    const auto& root = to ? *to : l;
    const auto used = nodes.symbols.find({root.signal, root.index});
    if (used != nodes.symbols.end() && place_of(schedule, root).is_host()) return per_node.first(used->second);
    return of(place_of(schedule, root));
  }
  std::uint32_t of_actor(std::size_t i) const noexcept {
    const auto hosts = schedule.hosts.size();
    if (i >= hosts) return of(schedule.kernels[i - hosts].place);
    if (schedule.hosts[i].rank) return *schedule.hosts[i].rank;
    const auto even = static_cast<std::uint32_t>(i * count / hosts);
    const auto used = nodes.actors.find(i);
    return used == nodes.actors.end() || used->second == node(even) ? even : per_node.first(used->second);
  }
  /// Bit r: the action concerns rank r. `actor`: the rank of the actor.
  std::uint64_t of(const Schedule::Action& a, std::uint32_t actor) const noexcept {
    using What = Schedule::Action::Kind;
    if (a.kind != What::submit && a.kind != What::rptr) return std::uint64_t{1} << actor;
    std::uint64_t out = 0;
    for (const auto q : a.queues) out |= std::uint64_t{1} << of(schedule.queues[q].place);
    return out;
  }
};

/// A rank that the others need not wait for.
struct LostRank {
  std::uint32_t rank{};
  std::uint32_t process{};  ///< which has ended; 0: the rank has stopped the run
};
inline std::string to_string(const LostRank& l) {
  return l.process == 0 ? fmt::format("rank {} has stopped the run: its report says why", l.rank)
                        : fmt::format("rank {} does not answer: its process {} has ended", l.rank, l.process);
}

class Team {
 public:
  /// `turns`: by which adversarial runs take turns; null: the ranks run side by side.
  Team(Ranks ranks, std::uint32_t mine, const Device& d, Conductor* turns)
      : ranks_(std::move(ranks)),
        mine_(mine),
        device_(d),
        turns_(turns),
        pages_(ranks_.count),
        steps_(actors(ranks_.schedule).size()) {}
  static std::uint64_t page_bytes(const Schedule& s) { return 8 * (kSteps + actors(s).size()); }

  const Ranks& ranks() const noexcept { return ranks_; }
  std::uint32_t mine() const noexcept { return mine_; }
  Conductor* turns() const noexcept { return turns_; }
  bool has(const SymbolOffset& l) const noexcept { return ranks_.of(l) == mine_; }
  bool is_far(std::uint32_t rank) const noexcept { return ranks_.node(rank) != ranks_.node(mine_); }
  /// Is it in the memory of this node?
  bool near(const SymbolOffset& l) const noexcept { return !is_far(ranks_.of(l)); }
  /// `first`: the first word of the rank's page.
  void join(std::uint32_t rank, const Signal& first) noexcept { pages_[rank] = first; }
  void reach(NetworkThread* n) noexcept { network_ = n; }
  /// A rank of another node has stored this word of its page. False: there is no such rank or word.
  bool told(std::uint32_t rank, std::uint64_t word, std::uint64_t v) const noexcept {
    if (rank >= ranks_.count || !is_far(rank) || word >= kSteps) return false;
    at(rank, static_cast<std::size_t>(word)).set(v);
    return true;
  }
  /// Wakes what waits for the word at this address of the device.
  void wake(GpuVa va) const noexcept {
    if (const auto& s = pages_[mine_]; s.wake) s.wake(s.context, va);
  }
  /// The actor's thread in this rank has ended. The next run counts on from its last step.
  void ended(std::size_t actor, std::uint64_t step) noexcept { steps_[actor] = step; }

  /// This rank gives up: the others stop, too.
  void stop() const noexcept {
    if (pages_[mine_].word) store(kStopped, 1);
  }
  /// A rank that keeps the others waiting for ever, if one is known to. A rank stops when it loses another: so a
  /// process that has ended without that comes first.
  std::optional<LostRank> lost() const {
    std::optional<LostRank> stopped;
    for (std::uint32_t r = 0; r < ranks_.count; ++r) {
      if (r == mine_) continue;
      // First, because a rank that ends has stored this before.
      const auto owner = is_far(r) ? std::optional(network_->owner(r)) : device_.origin(pages_[r].va);
      if (load(r, kStopped) != 0) {
        if (!stopped) stopped = LostRank{r};
      } else if (owner && owner->ended && !(leaving_ && load(r, kBarriers) >= barriers_)) {
        return LostRank{r, owner->process};
      }
    }
    return stopped;
  }
  /// A barrier after which a rank may end: one that has come here and has ended is not lost.
  template <class Stopped> bool leave(Deadline d, Stopped stopped) {
    leaving_ = true;
    const bool all = barrier(d, stopped);
    leaving_ = false;
    return all;
  }
  /// False: the deadline has passed, or `stopped` has returned true.
  template <class Stopped> bool barrier(Deadline d, Stopped stopped) {
    store(kBarriers, ++barriers_);
    for (std::uint32_t r = 0; r < ranks_.count; ++r)
      if (!reached(r, kBarriers, barriers_, d, stopped)) return false;
    return true;
  }

 private:
  friend class Turn;
  static constexpr std::size_t kBarriers = 0, kStopped = 1, kSteps = 2;

  std::uint64_t load(std::uint32_t rank, std::size_t word) const noexcept { return at(rank, word).load(); }
  Signal at(std::uint32_t rank, std::size_t word) const noexcept {
    auto s = pages_[rank];
    s.word += word;
    s.va = s.va + 8 * word;
    return s;
  }
  void store(std::size_t word, std::uint64_t v) const noexcept {
    at(mine_, word).set(v);
    if (network_ && word < kSteps) network_->tell(word, v);
  }
  template <class Stopped>
  bool reached(std::uint32_t rank, std::size_t word, std::uint64_t v, Deadline d, Stopped stopped) const {
    for (;;) {
      if (auto* const hand = Baton::held()) hand->until([&] { return load(rank, word) >= v; });
      if (wait(at(rank, word), Compare::ge, v, d.within(kLook))) return true;
      if (d.passed() || stopped()) return false;
    }
  }

  Ranks ranks_;
  std::uint32_t mine_;
  const Device& device_;
  Conductor* turns_;
  std::vector<Signal> pages_;
  std::vector<std::uint64_t> steps_;  // of each actor
  std::uint64_t barriers_ = 0;
  bool leaving_ = false;
  NetworkThread* network_ = nullptr;  // between nodes
};

/// Where one actor is, as this rank counts.
class Turn {
 public:
  Turn(const Team& team, std::size_t actor) noexcept
      : team_(team), word_(Team::kSteps + actor), step_(team.steps_[actor]) {}

  /// Waits for the other ranks' parts of earlier actions. False: as Team::barrier.
  template <class Stopped> bool begin(std::uint64_t ranks, Deadline d, Stopped stopped) const {
    if ((ranks >> team_.mine() & 1) == 0) return true;
    for (std::uint32_t r = 0; r < team_.ranks().count; ++r)
      if (r != team_.mine() && last_[r] != 0 && !team_.reached(r, word_, last_[r], d, stopped)) return false;
    return true;
  }
  void end(std::uint64_t ranks) noexcept {
    ++step_;
    for (std::uint32_t r = 0; r < team_.ranks().count; ++r)
      if ((ranks >> r & 1) != 0) last_[r] = step_;
    if ((ranks >> team_.mine() & 1) != 0) team_.store(word_, step_);
  }
  std::uint64_t step() const noexcept { return step_; }

 private:
  const Team& team_;
  std::size_t word_;
  std::uint64_t step_;
  std::array<std::uint64_t, 64> last_{};
};

}}}  // namespace sdma::v0_3::detail
