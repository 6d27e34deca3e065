// SPDX-License-Identifier: MIT
#include "reduce.hpp"

namespace sdma::explore {

using Kind = Packet::Kind;

void Reduction::futures(Machine::Const s) {
  hosts_ = 0;
  for (std::size_t q = 0; q < p_.queues.size(); ++q) {
    const auto& x = p_.queues[q];
    const auto at = m_.next(s, q);
    const bool more = at < x.packets.size();
    auto &front = future_[q], &land = future_[kLand + q], &move = future_[kMove + q];
    front = {.reads = x.polls[at], .data_reads = x.data_reads[at], .data_writes = x.data_writes[at], .alive = more};
    land = {.writes = x.posts[at], .alive = x.posts[at] != 0};
    move = {.reads = x.move_reads[at], .writes = x.move_writes[at]};
    each_bit(m_.open(s, q) & x.releases, [&](std::size_t i) {
      land.writes |= x.packets[i].sync_write;
      land.alive = true;
    });
    each_bit(m_.moving(s) & x.moves, [&](std::size_t i) {
      const auto& m = p_.later[i];
      if (m.from >= 0 && !(m_.loaded(s) >> i & 1)) move.reads |= bit(static_cast<std::size_t>(m.from));
      move.writes |= bit(static_cast<std::size_t>(m.to));
    });
    move.alive = (move.reads | move.writes) != 0;
  }
  for (std::size_t h = 0; h < p_.hosts.size(); ++h) {
    const auto& x = p_.hosts[h];
    const auto at = m_.position(s, h);
    future_[kHost + h] = {.reads = x.reads[at],
                          .writes = x.writes[at],
                          .data_reads = x.data_reads[at],
                          .data_writes = x.data_writes[at],
                          .alive = at < x.actions.size()};
    if (future_[kHost + h].alive) hosts_ |= one(kHost + h);
  }
}

std::uint64_t Reduction::writers(Mask cells) const {
  std::uint64_t out = 0;
  for (std::size_t a = 0; a < kAgents; ++a)
    if (future_[a].alive && (future_[a].writes & cells) != 0) out |= one(a);
  return out;
}
std::uint64_t Reduction::users(Mask cells) const {
  std::uint64_t out = 0;
  for (std::size_t a = 0; a < kAgents; ++a)
    if (future_[a].alive && ((future_[a].writes | future_[a].reads) & cells) != 0) out |= one(a);
  return out;
}

/// The front ends that may take the engine of `q` from it.
std::uint64_t Reduction::fronts_that_hold(std::size_t q) const {
  std::uint64_t out = 0;
  each_bit(p_.queues[q].sharers, [&](std::size_t o) {
    if (future_[o].alive && future_[o].reads != 0) out |= one(o);
  });
  return out;
}

/// A step that completes accesses to these cells hides them from front ends and hosts that would race with them.
std::uint64_t Reduction::races_with(Mask reads, Mask writes) const {
  std::uint64_t out = 0;
  for (std::size_t a = 0; a < kAgents; ++a)
    if ((a < kLand || a >= kHost) &&
        ((future_[a].data_writes & (reads | writes)) | (future_[a].data_reads & writes)) != 0)
      out |= one(a);
  return out;
}
std::uint64_t Reduction::completes(std::size_t q, std::uint64_t data) const {
  Mask reads = 0, writes = 0;
  each_bit(data, [&](std::size_t i) {
    reads |= p_.queues[q].packets[i].data_read;
    writes |= p_.queues[q].packets[i].data_write;
  });
  return races_with(reads, writes);
}

std::uint64_t Reduction::needs_front(Machine::Const s, std::size_t q) const {
  const auto& x = p_.queues[q];
  const auto at = m_.next(s, q);
  std::uint64_t out = 0;
  if (at == x.packets.size()) return 0;
  if (at == m_.published(s, q)) {
    for (std::size_t h = 0; h < p_.hosts.size(); ++h)
      if (p_.hosts[h].submits[m_.position(s, h)] >> q & 1) out |= one(kHost + h);
    return out;
  }
  if (const auto h = m_.holder(s, q); h >= 0) return one(static_cast<std::size_t>(h));
  if (p_.profile.fence_full && (m_.open(s, q) & x.releases) != 0) return one(kLand + q);
  const auto& k = x.packets[at];
  // If it may take the engine, everything else on the engine matters.
  if (k.kind != Kind::poll) out |= fronts_that_hold(q);
  else each_bit(x.sharers, [&](std::size_t o) { out |= one(o) | one(kLand + o) | one(kMove + o); });
  if (k.kind != Kind::poll) out |= hosts_;
  if (k.kind == Kind::selection) return out;
  if (!m_.drained(s, q, k)) out |= one(kLand + q) | one(kMove + q);
  const bool met = m_.satisfied(s, k);
  out |= writers(met && k.stable ? k.sync_read & ~p_.commuting : k.sync_read);
  if (m_.drains(k)) out |= completes(q, m_.open(s, q) & x.data) | hosts_;
  return out;
}

std::uint64_t Reduction::needs_landings(Machine::Const s, std::size_t q) const {
  const auto& x = p_.queues[q];
  auto flying = m_.open(s, q) & x.releases;
  if (flying == 0) return future_[kLand + q].alive ? one(q) : 0;
  if (const auto h = m_.holder(s, q); h >= 0) return one(static_cast<std::size_t>(h));
  std::uint64_t out = fronts_that_hold(q);
  if (p_.profile.fences_ordered) flying &= ~flying + 1;
  each_bit(flying, [&](std::size_t i) {
    if (m_.landing_waits(s, q, i)) out |= one(kMove + q);
    out |= users(x.packets[i].sync_write & ~p_.commuting);
    out |= completes(q, m_.open(s, q) & m_.covered(q, i));
    // What may still be pending when the last host ends: the last release, the last data packet, a store to a buffer.
    const auto later = ~((std::uint64_t{2} << i) - 1);
    const bool last =
        (x.releases & later) == 0 || ((x.lasting & later) == 0 && (m_.open(s, q) & m_.covered(q, i)) != 0);
    if (!p_.profile.fences_ordered && (x.posts[m_.next(s, q)] & x.packets[i].sync_write) != 0) out |= one(q);
    if (last || (x.packets[i].sync_write & p_.buffers) != 0 || !p_.profile.fences_ordered || x.has_conditions)
      out |= hosts_;
  });
  return out;
}

std::uint64_t Reduction::needs_moves(Machine::Const s, std::size_t q) const {
  const auto& x = p_.queues[q];
  const auto moving = m_.moving(s) & x.moves;
  if (moving == 0) return future_[kMove + q].alive ? one(q) : 0;
  if (const auto h = m_.holder(s, q); h >= 0) return one(static_cast<std::size_t>(h));
  std::uint64_t out = fronts_that_hold(q) | hosts_;
  each_bit(moving, [&](std::size_t i) {
    const auto& m = p_.later[i];
    if (m.from >= 0 && !(m_.loaded(s) >> i & 1)) out |= writers(bit(static_cast<std::size_t>(m.from)) & ~p_.commuting);
    out |= users(bit(static_cast<std::size_t>(m.to)));
    const auto at = m_.next(s, q);
    const auto cells = bit(static_cast<std::size_t>(m.to)) | (m.from >= 0 ? bit(static_cast<std::size_t>(m.from)) : 0);
    if (((x.move_reads[at] | x.move_writes[at]) & cells) != 0) out |= one(q);
    std::uint64_t data = m_.open(s, q) & x.data & ((std::uint64_t{2} << m.packet) - 1);
    out |= completes(q, data);
  });
  return out;
}

std::uint64_t Reduction::needs_host(Machine::Const s, std::size_t h) const {
  const auto at = m_.position(s, h);
  if (at == p_.hosts[h].actions.size()) return 0;
  const auto& a = p_.hosts[h].actions[at];
  std::uint64_t out = 0;
  // The last action ends the execution: what a condition does before that, it does not do after.
  if (at + 1 == p_.hosts[h].actions.size())
    for (std::size_t q = 0; q < p_.queues.size(); ++q)
      if (p_.queues[q].has_conditions && future_[q].alive) out |= one(q);
  if (a.kind == Action::Kind::access) return out;
  if (a.kind == Action::Kind::accessed) {
    const auto& begun = p_.hosts[h].actions[at - 1];
    return out | races_with(begun.data_read, begun.data_write);
  }
  if (a.kind == Action::Kind::set || a.kind == Action::Kind::add) return out | users(a.cells & ~p_.commuting);
  if (a.kind == Action::Kind::sample) return out | writers(a.cells);
  if (a.kind == Action::Kind::wait) {
    const bool met = m_.met(s, h, a);
    return out | writers(met && a.stable ? a.cells & ~p_.commuting : a.cells);
  }
  if (a.kind == Action::Kind::rptr) return m_.is_read(s, a.queue) ? out : out | one(a.queue);
  if (const auto other = m_.locked_by(s, a.queue, h); other >= 0) out |= one(kHost + static_cast<std::size_t>(other));
  if (!m_.has_room(s, a.queue)) out |= one(a.queue);
  if (p_.queues[a.queue].may_fill) out |= hosts_;
  return out | fronts_that_hold(a.queue);
}

std::uint64_t Reduction::needs(Machine::Const s, std::size_t a) const {
  if (a < kLand) return needs_front(s, a);
  if (a < kMove) return needs_landings(s, a - kLand);
  if (a < kHost) return needs_moves(s, a - kMove);
  return needs_host(s, a - kHost);
}

void Reduction::choose(Machine::Const s, std::vector<Step>& out) {
  out.clear();
  futures(s);
  std::array<std::uint64_t, kAgents> needs_of{};
  std::array<std::uint8_t, kAgents> count{};
  std::uint64_t known = 0, able = 0;
  for (std::size_t a = 0; a < kAgents; ++a) {
    const auto q = a % kMostQueues;
    if (a < kHost ? q >= p_.queues.size() : a - kHost >= p_.hosts.size()) continue;
    steps_of(s, a, [&](const Step&) { ++count[a]; });
    if (count[a] != 0) able |= one(a);
  }
  std::uint64_t best = able;
  std::size_t least = ~std::size_t{0};
  each_bit(able, [&](std::size_t first) {
    if (least == 1) return;
    std::uint64_t set = one(first), todo = set;
    std::size_t n = 0;
    while (todo != 0) {
      const auto a = static_cast<std::size_t>(__builtin_ctzll(todo));
      todo &= todo - 1;
      n += count[a];
      if (n >= least) return;
      if (!(known >> a & 1)) {
        needs_of[a] = needs(s, a);
        known |= one(a);
      }
      todo |= needs_of[a] & ~set;
      set |= needs_of[a];
    }
    least = n;
    best = set;
  });
  each_bit(best & able, [&](std::size_t a) { steps_of(s, a, [&](const Step& step) { out.push_back(step); }); });
}

}  // namespace sdma::explore
