// SPDX-License-Identifier: MIT
#pragma once
// The operational model: which steps a state allows, and what each does. Every rule of docs/ordering.md that concerns
// order is in machine.cpp, once.
//
//   A queue has a front end, which takes packets in order, and packets in flight. A data packet is in flight from its
//   start until something proves it complete: that is the longest that it can last, so every race shows as two packets
//   in flight. Its moves between data cells happen at its start; where nothing races, the time makes no difference. Its
//   moves from and to sync cells are steps of their own. A release is in flight until it lands.
//
//   pass     the front end passes a poll; a host passes a wait, sets a word, submits, or begins or ends an access
//   execute  a condition holds, or a selection selects
//   skip     the opposite
//   hold     a poll that is not satisfied takes its engine, and keeps it until it is satisfied (X2)
//   land     a release takes effect; earlier data packets are then complete
//   load     a move reads a sync cell
//   store    a move writes a sync cell
//
// Where the rules leave something open, every answer is possible:
//   - A waiting poll may hold its engine at any time. Then no other queue of that engine does anything, packets in
//     flight included (X2).
//   - A finite poll may pass at any time; it never stops its queue (Q9).
//   - PRE_EXEC may select its packets or not.
//   - A front end makes room in the ring when it has passed a packet; a waiting poll is not passed (H8, E6).
//
// A kernel is a host whose GPU has an L2 (threads.cpp). What it stores is in flight until its next release at system
// scope (C3). What others have stored since its last acquire at system scope is stale for it (C4). A word that it
// accesses at the scope of its GPU has a copy in the L2, which is written back and read again as late as the rules
// allow.
//
// Memory comes and goes (lifetimes.cpp): what is in flight, or waits at a word, needs its lives.
//
// A state is an array of words: the cells, loaded values, then bookkeeping. It can be copied and hashed.
#include "program.hpp"

#include <string>

namespace sdma::explore {

struct Step {
  enum class Kind : std::uint8_t { pass, execute, skip, hold, land, load, store };
  Kind kind{};
  bool host = false;
  std::uint8_t agent{};  ///< a queue, or a host
  std::uint8_t index{};  ///< land: the packet. load, store: the move
};

/// What is wrong in a state.
struct Violation {
  enum class Kind : std::uint8_t { none, race, undefined, stale, gone };
  /// A packet of a queue, or an access of a host.
  struct Place {
    bool host{};
    std::uint8_t agent{}, index{};
  };
  Kind kind{};
  Place at{}, other{};
};

class Machine {
 public:
  using State = std::uint64_t*;
  using Const = const std::uint64_t*;
  explicit Machine(const Program&);

  std::size_t words() const noexcept { return words_; }
  const Program& program() const noexcept { return p_; }
  void reset(State) const noexcept;
  /// Calls fn(step) for each step of an agent that is possible now.
  template <class Fn> void front_steps(Const s, std::size_t q, Fn&& fn) const;
  template <class Fn> void landings(Const s, std::size_t q, Fn&& fn) const;
  template <class Fn> void moves(Const s, std::size_t q, Fn&& fn) const;
  template <class Fn> void host_steps(Const s, std::size_t h, Fn&& fn) const;
  template <class Fn> void steps(Const s, Fn&& fn) const;
  Violation apply(State, const Step&) const noexcept;
  Violation present(Const) const noexcept;  ///< what waits at a word that is not there, also before the first step

  bool ended(Const) const noexcept;  ///< all hosts have ended
  bool has(Const s, std::uint64_t lives) const noexcept { return (lives & ~s[lives_]) == 0; }
  /// Published packets that have not completed.
  struct Pending {
    bool data{};                     ///< one that stores to a buffer
    bool posts{};                    ///< a release that stores to a signal
    std::uint8_t queue{}, packet{};  ///< the first of the former
  };
  Pending pending(Const) const noexcept;

  // The bookkeeping.
  std::size_t next(Const s, std::size_t q) const noexcept { return s[queue(q)] & 0xffff; }
  std::size_t published(Const s, std::size_t q) const noexcept { return s[queue(q)] >> 16 & 0xffff; }
  std::size_t pieces(Const s, std::size_t q) const noexcept { return s[queue(q)] >> 32 & 0xffff; }
  bool holds_engine(Const s, std::size_t q) const noexcept { return s[queue(q)] >> 48 & 1; }
  std::uint64_t open(Const s, std::size_t q) const noexcept { return s[queue(q) + 1]; }
  std::uint64_t moving(Const s) const noexcept { return s[moves_]; }
  std::uint64_t loaded(Const s) const noexcept { return s[moves_ + 1]; }
  std::size_t position(Const s, std::size_t h) const noexcept { return s[hosts_] >> (16 * h) & 0xffff; }
  std::uint64_t read(Const, const Word&) const noexcept;
  /// What an action of a host compares: a sample is added to its value.
  std::uint64_t value(Const s, const Action& a) const noexcept {
    const auto v = a.value + (a.sample < 0 ? 0 : s[slots_ + static_cast<std::size_t>(a.sample)]);
    return a.word.bytes == 4 ? static_cast<std::uint32_t>(v) : v;
  }
  /// Does the value of an action not fit its word?
  bool wide(Const s, const Action& a) const noexcept {
    if (a.word.bytes != 4 || a.sample < 0 || a.kind == Action::Kind::sample) return a.wide;
    return a.value + s[slots_ + static_cast<std::size_t>(a.sample)] > ~std::uint32_t{};
  }
  bool met(Const s, std::size_t h, const Action& a) const noexcept { return holds(seen(s, h, a), a.func, value(s, a)); }
  /// The access in the middle of which a host is; null if there is none.
  const Action* accessing(Const s, std::size_t h) const noexcept {
    const auto at = position(s, h);
    const auto& script = p_.hosts[h].actions;
    return at < script.size() && script[at].kind == Action::Kind::accessed ? &script[at - 1] : nullptr;
  }
  /// The contents of a move.
  std::uint64_t content(Const, const Move&) const noexcept;
  /// The queue whose waiting poll keeps `q` from its engine; -1 if none does.
  int holder(Const s, std::size_t q) const noexcept;
  bool satisfied(Const s, const Packet& k) const noexcept { return holds(read(s, k.word) & k.mask, k.func, k.value); }
  /// Has everything that a poll or condition of this queue waits for completed?
  bool drained(Const s, std::size_t q, const Packet& k) const noexcept {
    const bool full = k.kind == Packet::Kind::poll        ? p_.profile.poll_full
                      : k.kind == Packet::Kind::condition ? p_.profile.cond_exec_ordered
                                                          : false;
    return !full || ((open(s, q) & p_.queues[q].releases) == 0 && (moving(s) & p_.queues[q].moves) == 0);
  }
  bool drains(const Packet& k) const noexcept {
    return k.kind == Packet::Kind::poll ? p_.profile.poll_full
                                        : k.kind == Packet::Kind::condition && p_.profile.cond_exec_ordered;
  }
  /// The data packets that are complete once the release at `i` has landed.
  std::uint64_t covered(std::size_t q, std::size_t i) const noexcept {
    const auto& x = p_.queues[q];
    auto data = p_.profile.fence_covers_writes ? x.data : x.data & ~x.writes;
    // Q3: a word in VRAM says nothing about data in host memory.
    if (x.packets[i].in_vram && !p_.profile.vram_fence_covers && !x.network) data &= ~x.to_host;
    return data & ((std::uint64_t{1} << i) - 1);
  }
  /// Do two data packets of a queue take effect in order?
  bool ordered(std::size_t q, std::size_t earlier, std::size_t later) const noexcept;
  bool has_room(Const s, std::size_t q) const noexcept;
  /// May rptr show that everything published has been read? It may have passed a poll that still waits (E6).
  bool is_read(Const s, std::size_t q) const noexcept;
  /// The host that has published a part of its submit of this queue; -1 if none has.
  int locked_by(Const s, std::size_t q, std::size_t h) const noexcept;
  bool landing_waits(Const s, std::size_t q, std::size_t i) const noexcept;
  bool move_waits(Const s, std::size_t m) const noexcept;
  /// Has a swap loaded everything that it stores later?
  bool swapped(Const s, const Packet& k) const noexcept {
    for (std::size_t i = k.later; i < k.later + std::size_t{k.laters}; ++i)
      if ((moving(s) >> i & 1) != 0 && !(loaded(s) >> i & 1)) return false;
    return true;
  }

 private:
  std::size_t queue(std::size_t q) const noexcept { return queues_ + 2 * q; }
  void write(State, const Word&, std::uint64_t) const noexcept;
  void post(State, const Packet&) const noexcept;
  void start(State, std::size_t q, const Packet&) const noexcept;
  Violation settle(State) const noexcept;
  Violation conflict(Const, std::size_t q, std::size_t i) const noexcept;
  /// What is in flight and has no order with an access to these cells by `me`.
  Violation conflict(Const, Violation::Place me, Mask reads, Mask writes) const noexcept;
  /// The next action of a host or a kernel.
  Violation act(State, std::size_t h) const noexcept;
  Violation access(State, std::size_t h, const Action&) const noexcept;
  Violation advance(State, const Step&) const noexcept;
  Violation change_lives(State, std::size_t h, const Action&) const noexcept;
  std::uint64_t in_l2(Const, std::size_t kernel) const noexcept;
  std::uint64_t seen(Const, std::size_t h, const Action&) const noexcept;
  void write_back(State, int gpu, const Word* only) const noexcept;
  void read_again(State, int gpu, const Word* only) const noexcept;
  void acquire(State, std::size_t h) const noexcept;
  void make_stale(State, Mask written, int by) const noexcept;
  // What a kernel has stored and not released, and what an L2 may hold old contents of.
  Mask mask(Const s, std::size_t at) const noexcept { return Mask{s[at + 1]} << 64 | s[at]; }
  void set_mask(State s, std::size_t at, Mask m) const noexcept {
    s[at] = static_cast<std::uint64_t>(m);
    s[at + 1] = static_cast<std::uint64_t>(m >> 64);
  }
  std::size_t unreleased(std::size_t h) const noexcept { return kernels_ + 4 * h; }
  std::size_t stale(std::size_t h) const noexcept { return kernels_ + 4 * h + 2; }
  void store(State, std::size_t m, std::uint64_t value) const noexcept;

  const Program& p_;
  std::size_t slots_, moves_, queues_, hosts_, dirty_, lives_, kernels_, words_;
};

template <class Fn> void each_bit(std::uint64_t bits, Fn&& fn) {
  for (; bits != 0; bits &= bits - 1) fn(static_cast<std::size_t>(__builtin_ctzll(bits)));
}

template <class Fn> void Machine::front_steps(Const s, std::size_t q, Fn&& fn) const {
  const auto at = next(s, q);
  const auto& x = p_.queues[q];
  if (at == published(s, q) || holder(s, q) >= 0) return;
  if (p_.profile.fence_full && (open(s, q) & x.releases) != 0) return;
  const auto& k = x.packets[at];
  Step step{.agent = static_cast<std::uint8_t>(q), .index = static_cast<std::uint8_t>(at)};
  const auto offer = [&](Step::Kind kind) {
    step.kind = kind;
    fn(step);
  };
  if (k.kind == Packet::Kind::selection) {
    offer(Step::Kind::execute);
    offer(Step::Kind::skip);
  } else if (k.kind == Packet::Kind::condition) {
    if (drained(s, q, k)) offer(satisfied(s, k) ? Step::Kind::execute : Step::Kind::skip);
  } else if (k.kind == Packet::Kind::poll) {
    const bool met = satisfied(s, k), expires = k.may_expire && !p_.profile.finite_poll_edge;
    if (drained(s, q, k) && (met || expires)) offer(Step::Kind::pass);
    if (!met && !expires && x.sharers != 0 && !holds_engine(s, q)) offer(Step::Kind::hold);
  }
}

template <class Fn> void Machine::landings(Const s, std::size_t q, Fn&& fn) const {
  auto flying = open(s, q) & p_.queues[q].releases;
  if (flying == 0 || holder(s, q) >= 0) return;
  if (p_.queues[q].network) {
    // Words of one node change in order; one that comes back, after all that was sent before it.
    const auto all = flying;
    bool peers = false;
    flying = 0;
    each_bit(all, [&](std::size_t i) {
      const bool returns = p_.queues[q].packets[i].returns;
      if (returns ? (all & ((std::uint64_t{1} << i) - 1)) == 0 : !peers) flying |= std::uint64_t{1} << i;
      peers = peers || !returns;
    });
  } else if (p_.profile.fences_ordered) {
    flying &= ~flying + 1;
  }
  each_bit(flying, [&](std::size_t i) {
    if (!landing_waits(s, q, i))
      fn(Step{.kind = Step::Kind::land, .agent = static_cast<std::uint8_t>(q), .index = static_cast<std::uint8_t>(i)});
  });
}

template <class Fn> void Machine::moves(Const s, std::size_t q, Fn&& fn) const {
  const auto mine = moving(s) & p_.queues[q].moves;
  if (mine == 0 || holder(s, q) >= 0) return;
  each_bit(mine, [&](std::size_t i) {
    if (move_waits(s, i)) return;
    const auto& m = p_.later[i];
    const bool load = m.slot >= 0 && !(loaded(s) >> i & 1);
    const auto& k = p_.queues[q].packets[m.packet];
    if (k.is_swap && !load && !swapped(s, k)) return;
    fn(Step{.kind = load ? Step::Kind::load : Step::Kind::store,
            .agent = static_cast<std::uint8_t>(q),
            .index = static_cast<std::uint8_t>(i)});
  });
}

template <class Fn> void Machine::host_steps(Const s, std::size_t h, Fn&& fn) const {
  const auto at = position(s, h);
  const auto& script = p_.hosts[h].actions;
  if (at == script.size()) return;
  const auto& a = script[at];
  bool possible = true;
  if (a.kind == Action::Kind::wait) possible = wide(s, a) || met(s, h, a);
  if (a.kind == Action::Kind::rptr) possible = is_read(s, a.queue);
  if (a.kind == Action::Kind::submit) possible = locked_by(s, a.queue, h) < 0 && has_room(s, a.queue);
  if (possible) fn(Step{.kind = Step::Kind::pass, .host = true, .agent = static_cast<std::uint8_t>(h)});
}

template <class Fn> void Machine::steps(Const s, Fn&& fn) const {
  for (std::size_t q = 0; q < p_.queues.size(); ++q) {
    front_steps(s, q, fn);
    landings(s, q, fn);
    moves(s, q, fn);
  }
  for (std::size_t h = 0; h < p_.hosts.size(); ++h) host_steps(s, h, fn);
}

}  // namespace sdma::explore
