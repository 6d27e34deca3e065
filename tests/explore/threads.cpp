// SPDX-License-Identifier: MIT
// What hosts and kernels do, and what the L2 of a kernel's GPU holds meanwhile.
#include "machine.hpp"

namespace sdma::explore {

/// At system scope, a kernel sees what kernels of its GPU have stored to the word, at whichever scope.
std::uint64_t Machine::seen(Const s, std::size_t h, const Action& a) const noexcept {
  if (p_.hosts[h].gpu >= 0 && !a.agent_scope)
    for (std::size_t i = 0; i < p_.shadows.size(); ++i)
      if (const auto& x = p_.shadows[i];
          x.gpu == p_.hosts[h].gpu && x.memory.first == a.word.first && (s[dirty_] >> i & 1) != 0)
        return read(s, x.copy);
  return read(s, a.word);
}

void Machine::write_back(State s, int gpu, const Word* only) const noexcept {
  for (std::size_t i = 0; i < p_.shadows.size(); ++i) {
    const auto& x = p_.shadows[i];
    if (x.gpu != gpu || (only && x.memory.first != only->first) || !(s[dirty_] >> i & 1)) continue;
    write(s, x.memory, read(s, x.copy));
    s[dirty_] &= ~(std::uint64_t{1} << i);
  }
}
void Machine::read_again(State s, int gpu, const Word* only) const noexcept {
  for (std::size_t i = 0; i < p_.shadows.size(); ++i) {
    const auto& x = p_.shadows[i];
    if (x.gpu != gpu || (only && x.memory.first != only->first) || (s[dirty_] >> i & 1)) continue;
    write(s, x.copy, read(s, x.memory));
  }
}

/// What is still in flight will be stale again.
void Machine::acquire(State s, std::size_t h) const noexcept {
  Mask left = 0;
  for (std::size_t q = 0; q < p_.queues.size() && !p_.profile.l2_probed; ++q)
    each_bit(open(s, q) & p_.queues[q].data, [&](std::size_t i) { left |= p_.queues[q].packets[i].data_write; });
  for (std::size_t o = 0; o < p_.hosts.size(); ++o) {
    if (const auto* a = accessing(s, o)) left |= a->data_write;
    if (p_.hosts[o].gpu != p_.hosts[h].gpu) left |= mask(s, unreleased(o));
  }
  set_mask(s, stale(h), mask(s, stale(h)) & left);
}

void Machine::make_stale(State s, Mask written, int by) const noexcept {
  if (!p_.has_kernels || written == 0) return;
  for (std::size_t h = 0; h < p_.hosts.size(); ++h) {
    if (p_.hosts[h].gpu < 0) continue;
    // What a kernel of this GPU stores is in the L2.
    const bool here = by >= 0 && p_.hosts[h].gpu == p_.hosts[static_cast<std::size_t>(by)].gpu;
    set_mask(s, stale(h), here ? mask(s, stale(h)) & ~written : mask(s, stale(h)) | written);
    // It takes the place of what another kernel of this GPU has stored there before.
    if (here) set_mask(s, unreleased(h), mask(s, unreleased(h)) & ~written);
  }
}

Violation Machine::access(State s, std::size_t h, const Action& a) const noexcept {
  const Violation::Place me{true, static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(position(s, h))};
  if (const auto v = conflict(s, me, a.data_read, a.data_write); v.kind != Violation::Kind::none) return v;
  if (p_.has_kernels && (mask(s, stale(h)) & a.data_read) != 0) return {Violation::Kind::stale, me, {}};
  std::uint64_t values[kMostCells];
  const auto* now = p_.now.data() + a.now;
  for (std::size_t i = 0; i < a.nows; ++i) values[i] = content(s, now[i]);
  for (std::size_t i = 0; i < a.nows; ++i) s[static_cast<std::size_t>(now[i].to)] = values[i];
  make_stale(s, a.data_write, static_cast<int>(h));
  if (p_.hosts[h].gpu >= 0) set_mask(s, unreleased(h), mask(s, unreleased(h)) | a.data_write);
  return {};
}

Violation Machine::act(State s, std::size_t h) const noexcept {
  using Does = Action::Kind;
  const auto& a = p_.hosts[h].actions[position(s, h)];
  const auto gpu = p_.hosts[h].gpu;
  const bool posts = a.kind == Does::set || a.kind == Does::add, looks = a.kind == Does::wait || a.kind == Does::sample;
  const bool system = gpu >= 0 && !a.agent_scope;
  if ((posts || a.kind == Does::wait) && wide(s, a))
    return {Violation::Kind::undefined,
            {true, static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(position(s, h))},
            {}};
  if (system && (posts || a.kind == Does::submit)) {
    write_back(s, gpu, nullptr);
    set_mask(s, unreleased(h), 0);
  }
  if (system && looks) {
    write_back(s, gpu, &a.word);
    read_again(s, gpu, nullptr);
    acquire(s, h);
  }
  if (a.kind != Does::wait && (a.lives & ~s[lives_]) != 0)
    return {Violation::Kind::gone, {true, static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(position(s, h))}, {}};
  if (a.kind == Does::life)
    if (const auto v = change_lives(s, h, a); v.kind != Violation::Kind::none) return v;
  if (a.kind == Does::set) write(s, a.word, value(s, a));
  if (a.kind == Does::add) write(s, a.word, read(s, a.word) + value(s, a));
  if (a.kind == Does::sample) s[slots_ + static_cast<std::size_t>(a.sample)] = read(s, a.word);
  if (system && posts) read_again(s, gpu, &a.word);
  for (std::size_t i = 0; posts && a.agent_scope && i < p_.shadows.size(); ++i)
    if (p_.shadows[i].copy.first == a.word.first) s[dirty_] |= std::uint64_t{1} << i;
  if (a.kind == Does::access)
    if (const auto v = access(s, h, a); v.kind != Violation::Kind::none) return v;
  if (a.kind == Does::submit) {
    const auto n = p_.queues[a.queue].pieces[pieces(s, a.queue)].packets;
    s[queue(a.queue)] += (std::uint64_t{1} << 32) + (std::uint64_t{n} << 16);
  }
  s[hosts_] += std::uint64_t{1} << (16 * h);
  // The end of a kernel is a release, which no other agent can wait for.
  if (!p_.shadows.empty() && ended(s))
    for (const auto& x : p_.shadows) write_back(s, x.gpu, nullptr);
  return {};
}

}  // namespace sdma::explore
