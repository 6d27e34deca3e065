// SPDX-License-Identifier: MIT
#include "machine.hpp"

#include <algorithm>

namespace sdma::explore {

using Kind = Packet::Kind;

Machine::Machine(const Program& p)
    : p_(p),
      slots_(p.cells.size()),
      moves_(slots_ + p.slots),
      queues_(moves_ + 2),
      hosts_(queues_ + 2 * p.queues.size()),
      dirty_(hosts_ + 1),
      lives_(dirty_ + 1),
      kernels_(lives_ + 1),
      words_(kernels_ + (p.has_kernels ? 4 * p.hosts.size() : 0)) {}

void Machine::reset(State s) const noexcept {
  std::fill_n(s, words_, 0);
  for (std::size_t i = 0; i < p_.cells.size(); ++i) s[i] = p_.cells[i].value;
  s[lives_] = p_.lives.first;
}

std::uint64_t Machine::read(Const s, const Word& w) const noexcept {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < w.cells; ++i) v |= s[w.first + i] << p_.shift(w, i);
  return v;
}
void Machine::write(State s, const Word& w, std::uint64_t v) const noexcept {
  for (std::size_t i = 0; i < w.cells; ++i) {
    const auto bytes = p_.cells[w.first + i].bytes;
    auto part = v >> p_.shift(w, i);
    if (bytes < 8) part &= (std::uint64_t{1} << (8 * bytes)) - 1;
    s[w.first + i] = part;
  }
}

void Machine::post(State s, const Packet& k) const noexcept {
  const auto now = read(s, k.word);
  const auto fit = [&](std::uint64_t v) { return k.word.bytes == 4 ? static_cast<std::uint32_t>(v) : v; };
  const auto value = fit(k.value);
  auto v = value;
  switch (k.op) {
    case Packet::Op::store:
    case Packet::Op::swap: break;
    case Packet::Op::add: v = fit(now + value); break;
    case Packet::Op::bit_and: v = now & value; break;
    case Packet::Op::bit_or: v = now | value; break;
    case Packet::Op::bit_xor: v = now ^ value; break;
    case Packet::Op::umin: v = std::min(now, value); break;
    case Packet::Op::umax: v = std::max(now, value); break;
    case Packet::Op::cmpswap: v = now == fit(k.compare) ? value : now; break;
    case Packet::Op::inc: v = now >= value ? 0 : now + 1; break;
    case Packet::Op::dec: v = now == 0 || now > value ? value : now - 1; break;
  }
  write(s, k.word, v);
}

int Machine::holder(Const s, std::size_t q) const noexcept {
  for (auto bits = p_.queues[q].sharers; bits != 0; bits &= bits - 1) {
    const auto other = static_cast<std::size_t>(__builtin_ctzll(bits));
    if (holds_engine(s, other)) return static_cast<int>(other);
  }
  return -1;
}

bool Machine::ordered(std::size_t q, std::size_t earlier, std::size_t later) const noexcept {
  const auto& x = p_.queues[q];
  const auto between = (std::uint64_t{2} << later) - (std::uint64_t{1} << earlier);
  // A TIMESTAMP waits for everything earlier, and nothing waits for it: Q10.
  if (x.stamps >> later & 1) return true;
  if (x.stamps >> earlier & 1) return false;
  // A WRITE at or between the two: Q2. Otherwise both are copies or fills: Q1.
  if (p_.profile.writes_ordered && (x.writes & between) != 0) return true;
  return p_.profile.copies_in_order && ((x.writes >> earlier | x.writes >> later) & 1) == 0;
}

bool Machine::has_room(Const s, std::size_t q) const noexcept {
  const auto& x = p_.queues[q];
  if (!x.may_fill) return true;
  const auto at = next(s, q);
  const auto n = pieces(s, q);
  // The engine has read the padding before a packet that it has got to.
  const bool published = n != 0 && at < x.packets.size() && x.packets[at].ring_end <= x.pieces[n - 1].ring_end;
  const auto consumed = published ? x.packets[at].ring_end - x.packets[at].dwords * 4
                        : at == 0 ? 0
                                  : x.packets[at - 1].ring_end;
  return x.pieces[n].ring_end - consumed < x.ring;
}

bool Machine::is_read(Const s, std::size_t q) const noexcept {
  const auto at = next(s, q), all = published(s, q);
  return at >= all || (at + 1 == all && p_.queues[q].packets[at].kind == Packet::Kind::poll);
}

int Machine::locked_by(Const s, std::size_t q, std::size_t h) const noexcept {
  for (std::size_t other = 0; other < p_.hosts.size(); ++other) {
    const auto& script = p_.hosts[other].actions;
    const auto at = position(s, other);
    if (other == h || at == script.size()) continue;
    const auto& a = script[at];
    if (a.kind == Action::Kind::submit && a.queue == q && !a.first) return static_cast<int>(other);
  }
  return -1;
}

/// Must this landing wait for stores of earlier packets to sync cells? (Q3)
bool Machine::landing_waits(Const s, std::size_t q, std::size_t i) const noexcept {
  const auto before = covered(q, i);
  bool waits = false;
  each_bit(moving(s) & p_.queues[q].moves, [&](std::size_t m) { waits = waits || before >> p_.later[m].packet & 1; });
  return waits;
}

/// Must this move wait for the moves of earlier packets that it is ordered after? (Q1, Q2)
bool Machine::move_waits(Const s, std::size_t m) const noexcept {
  const auto q = p_.later[m].queue;
  if (!p_.profile.copies_in_order && !p_.profile.writes_ordered && p_.queues[q].stamps == 0) return false;
  bool waits = false;
  each_bit(moving(s) & p_.queues[q].moves, [&](std::size_t o) {
    const auto earlier = p_.later[o].packet, later = p_.later[m].packet;
    waits = waits || (earlier < later && ordered(q, earlier, later));
  });
  return waits;
}

Violation Machine::conflict(Const s, std::size_t q, std::size_t i) const noexcept {
  const auto& k = p_.queues[q].packets[i];
  return conflict(s, {false, static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(i)}, k.data_read, k.data_write);
}

Violation Machine::conflict(Const s, Violation::Place me, Mask reads, Mask writes) const noexcept {
  const auto meet = [&](Mask r, Mask w) { return (writes & (r | w)) != 0 || (reads & w) != 0; };
  const auto race = [&](bool host, std::size_t agent, std::size_t index) {
    return Violation{
        Violation::Kind::race, me, {host, static_cast<std::uint8_t>(agent), static_cast<std::uint8_t>(index)}};
  };
  for (std::size_t o = 0; o < p_.queues.size(); ++o) {
    const auto& x = p_.queues[o];
    for (auto bits = open(s, o) & x.data; bits != 0; bits &= bits - 1) {
      const auto j = static_cast<std::size_t>(__builtin_ctzll(bits));
      const auto& other = x.packets[j];
      if (!meet(other.data_read, other.data_write) || (!me.host && o == me.agent && ordered(o, j, me.index))) continue;
      return race(false, o, j);
    }
  }
  for (std::size_t h = 0; h < p_.hosts.size(); ++h) {
    if (me.host && me.agent == h) continue;
    const auto* a = accessing(s, h);
    if (a && meet(a->data_read, a->data_write)) return race(true, h, position(s, h) - 1);
    const bool one_gpu = me.host && p_.hosts[h].gpu >= 0 && p_.hosts[h].gpu == p_.hosts[me.agent].gpu;
    if (p_.has_kernels && !one_gpu && meet(0, mask(s, unreleased(h)))) return race(true, h, position(s, h));
  }
  return {};
}

std::uint64_t Machine::content(Const s, const Move& m) const noexcept {
  if (m.from >= 0) return s[static_cast<std::size_t>(m.from)];
  if (m.parts == 0) return m.value;
  const auto part = [&](std::size_t i) {
    return static_cast<std::uint32_t>(s[static_cast<std::size_t>(p_.parts[m.part + i])]);
  };
  auto sum = part(0);
  for (std::size_t i = 1; i < m.parts; ++i) sum = plus(m.type, sum, part(i));
  return sum;
}

void Machine::start(State s, std::size_t q, const Packet& k) const noexcept {
  // A swap loads everything before it stores anything.
  std::uint64_t values[kMostCells * 2];
  const auto* now = p_.now.data() + k.now;
  for (std::size_t i = 0; i < k.nows; ++i) values[i] = content(s, now[i]);
  for (std::size_t i = 0; i < k.nows; ++i) s[static_cast<std::size_t>(now[i].to)] = values[i];
  for (std::size_t i = k.later; i < k.later + std::size_t{k.laters}; ++i) {
    s[moves_] |= std::uint64_t{1} << i;
    const auto& m = p_.later[i];
    if (!m.load_at_start) continue;
    s[slots_ + static_cast<std::size_t>(m.slot)] = s[static_cast<std::size_t>(m.from)];
    s[moves_ + 1] |= std::uint64_t{1} << i;
  }
  s[queue(q) + 1] |= std::uint64_t{1} << next(s, q);
  if (!p_.profile.l2_probed) make_stale(s, k.data_write, -1);
}

/// Front ends take all packets that no choice depends on.
Violation Machine::settle(State s) const noexcept {
  for (std::size_t q = 0; q < p_.queues.size(); ++q) {
    const auto& x = p_.queues[q];
    while (next(s, q) < published(s, q) && holder(s, q) < 0) {
      if (p_.profile.fence_full && (open(s, q) & x.releases) != 0) break;
      const auto at = next(s, q);
      const auto& k = x.packets[at];
      if ((k.kind == Kind::data || k.kind == Kind::release) && (k.lives & ~s[lives_]) != 0)
        return {Violation::Kind::gone, {false, static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(at)}, {}};
      if (k.kind == Kind::data) {
        if (k.undefined)
          return {Violation::Kind::undefined, {false, static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(at)}, {}};
        if (const auto v = conflict(s, q, at); v.kind != Violation::Kind::none) return v;
        start(s, q, k);
      } else if (k.kind == Kind::release) {
        s[queue(q) + 1] |= std::uint64_t{1} << at;
      } else if (k.kind != Kind::nothing) {
        break;
      }
      ++s[queue(q)];
    }
  }
  return {};
}

void Machine::store(State s, std::size_t i, std::uint64_t value) const noexcept {
  const auto& m = p_.later[i];
  const auto& x = p_.queues[m.queue];
  s[static_cast<std::size_t>(m.to)] = value;
  s[moves_] &= ~(std::uint64_t{1} << i);
  s[moves_ + 1] &= ~(std::uint64_t{1} << i);
  if (m.slot >= 0) s[slots_ + static_cast<std::size_t>(m.slot)] = 0;
  auto& flying = s[queue(m.queue) + 1];
  const auto& k = x.packets[m.packet];
  const auto own = ((std::uint64_t{1} << k.laters) - 1) << k.later;
  if ((k.data_read | k.data_write) == 0 && (moving(s) & (k.laters == 64 ? ~std::uint64_t{0} : own)) == 0)
    flying &= ~(std::uint64_t{1} << m.packet);
  each_bit(flying & x.data & ((std::uint64_t{1} << m.packet) - 1), [&](std::size_t earlier) {
    if (ordered(m.queue, earlier, m.packet)) flying &= ~(std::uint64_t{1} << earlier);
  });
}

Violation Machine::apply(State s, const Step& step) const noexcept {
  const auto v = advance(s, step);
  return v.kind != Violation::Kind::none || p_.lives.all.empty() ? v : present(s);
}

Violation Machine::advance(State s, const Step& step) const noexcept {
  const auto q = std::size_t{step.agent};
  if (step.host) {
    const auto v = act(s, q);
    return v.kind != Violation::Kind::none ? v : settle(s);
  }
  auto& front = s[queue(q)];
  auto& flying = s[queue(q) + 1];
  switch (step.kind) {
    case Step::Kind::hold: front |= std::uint64_t{1} << 48; break;
    case Step::Kind::pass:
    case Step::Kind::execute:
    case Step::Kind::skip: {
      const auto& k = p_.queues[q].packets[step.index];
      front &= ~(std::uint64_t{1} << 48);
      if (drains(k)) flying &= ~p_.queues[q].data;
      if (step.kind == Step::Kind::skip) front += k.skip_to - std::uint64_t{step.index};
      else ++front;
      break;
    }
    case Step::Kind::land:
      post(s, p_.queues[q].packets[step.index]);
      flying &= ~(covered(q, step.index) | std::uint64_t{1} << step.index);
      break;
    case Step::Kind::load: {
      const auto& m = p_.later[step.index];
      s[slots_ + static_cast<std::size_t>(m.slot)] = s[static_cast<std::size_t>(m.from)];
      s[moves_ + 1] |= std::uint64_t{1} << step.index;
      break;
    }
    case Step::Kind::store: {
      const auto& m = p_.later[step.index];
      const auto value = m.slot >= 0 ? s[slots_ + static_cast<std::size_t>(m.slot)] : content(s, m);
      store(s, step.index, value);
      break;
    }
  }
  return settle(s);
}

bool Machine::ended(Const s) const noexcept {
  for (std::size_t h = 0; h < p_.hosts.size(); ++h)
    if (position(s, h) != p_.hosts[h].actions.size()) return false;
  return true;
}

Machine::Pending Machine::pending(Const s) const noexcept {
  Pending out;
  for (std::size_t q = 0; q < p_.queues.size(); ++q) {
    const auto& x = p_.queues[q];
    auto left = open(s, q);
    for (auto i = next(s, q); i < published(s, q);) {
      left |= std::uint64_t{1} << i;
      const auto& k = x.packets[i];
      i = k.kind == Kind::condition && !satisfied(s, k) ? k.skip_to : i + 1;
    }
    auto data = left & x.data;
    each_bit(left & x.releases, [&](std::size_t i) {
      if ((x.packets[i].sync_write & p_.buffers) != 0) data |= std::uint64_t{1} << i;
    });
    const auto posts = left & x.releases & ~data;
    out.posts = out.posts || posts != 0;
    if (data == 0 || out.data) continue;
    out.data = true;
    out.queue = static_cast<std::uint8_t>(q);
    out.packet = static_cast<std::uint8_t>(__builtin_ctzll(data));
  }
  return out;
}

}  // namespace sdma::explore
