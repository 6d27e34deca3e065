// SPDX-License-Identifier: MIT
// Memory that comes and goes: which lives packets and actions need, and what ends a life under a use. No code of the
// checker or of the library's own lifetimes is used here.
//
//   a life is a bit of the state: of a buffer, of a GPU's mapping of one, of the handle by which other GPUs reach it
//   gone: something starts, or waits at a word, without a life that it needs; or a life ends under what is in flight,
//         or under what the L2 of a kernel's GPU has not written back
#include "machine.hpp"

#include <algorithm>

namespace sdma::explore {
namespace {

using Do = Schedule::Action::Kind;

/// The buffers that an address names: its own, and what that is an alias of.
template <class Fn> void each_buffer(const Schedule& s, GpuVa va, Fn fn) {
  for (int i = 0; i < 65; ++i) {
    const auto l = find_symbol(s, va);
    if (!l) return;
    const auto at = l->signal ? s.signals[l->index].at : s.buffers[l->index].at;
    if (!l->signal) fn(l->index, !at);
    if (!at) return;
    va = GpuVa{at->value + l->offset};
  }
}

}  // namespace

std::uint64_t Lives::of(const Schedule& s, GpuVa va, Place user) const {
  std::uint64_t need = 0;
  each_buffer(s, va, [&](std::size_t b, bool root) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& l = all[i];
      if (l.buffer != b) continue;
      const bool needs =
          l.kind == Life::Kind::memory ||
          (root && !user.is_host() && (l.kind == Life::Kind::mapping ? l.gpu == user : s.buffers[b].place != user));
      if (needs) need |= std::uint64_t{1} << i;
    }
  });
  return need;
}

namespace detail {

/// The lives that actions of the schedule begin or end. False: too many of them.
bool find_lives(const Schedule& s, Lives& out) {
  struct Seen {
    bool begins = false, ends = false;
  };
  std::vector<std::pair<Life, Seen>> found;
  const auto note = [&](Life::Kind kind, std::size_t b, Place gpu, bool begins) {
    auto at = std::find_if(found.begin(), found.end(), [&](const auto& f) {
      return f.first.kind == kind && f.first.buffer == b && f.first.gpu == gpu;
    });
    if (at == found.end()) at = found.insert(found.end(), {Life{kind, b, gpu}, {}});
    (begins ? at->second.begins : at->second.ends) = true;
  };
  const auto scan = [&](const auto& self, const std::vector<Schedule::Action>& all) -> void {
    for (const auto& a : all) {
      self(self, a.body);
      const auto l = find_symbol(s, a.buffer);
      if (!l || l->signal) continue;
      if (a.kind == Do::alloc || a.kind == Do::free) note(Life::Kind::memory, l->index, {}, a.kind == Do::alloc);
      if (a.kind == Do::map || a.kind == Do::unmap) note(Life::Kind::mapping, l->index, a.gpu, a.kind == Do::map);
      if (a.kind == Do::export_handle || a.kind == Do::close_handle) note(Life::Kind::handle, l->index, {}, true);
    }
  };
  for (const auto& h : s.hosts) scan(scan, h.actions);
  for (auto& [life, seen] : found) {
    const auto& b = s.buffers[life.buffer];
    const bool listed = b.map.empty() || std::find(b.map.begin(), b.map.end(), life.gpu) != b.map.end();
    life.by_alloc = life.kind == Life::Kind::mapping && !seen.begins && listed;
    const bool allocated = std::any_of(found.begin(), found.end(), [&](const auto& f) {
      return f.first.kind == Life::Kind::memory && f.first.buffer == life.buffer && f.second.begins;
    });
    const bool first = life.kind == Life::Kind::memory ? !seen.begins : life.by_alloc && !allocated;
    if (first) out.first |= std::uint64_t{1} << out.all.size();
    out.all.push_back(life);
  }
  return out.all.size() <= 64;
}

/// What an action of a host does to lives, and what has to be before.
Action life_action(const Schedule& s, const Lives& lives, const Schedule::Action& a) {
  Action x{.kind = Action::Kind::life};
  const auto buffer = find_symbol(s, a.buffer)->index;
  std::uint64_t own = 0;
  for (std::size_t i = 0; i < lives.all.size(); ++i) {
    const auto& l = lives.all[i];
    const auto me = std::uint64_t{1} << i;
    if (l.buffer != buffer) continue;
    const bool mapping = l.kind == Life::Kind::mapping && l.gpu == a.gpu;
    if (a.kind == Do::alloc && l.kind == Life::Kind::memory) own |= me, x.sets |= me, x.must_not |= me;
    if (a.kind == Do::alloc && l.by_alloc) x.sets |= me;
    if (a.kind == Do::free && l.kind == Life::Kind::memory) own |= me, x.must |= me;
    if (a.kind == Do::free) x.clears |= me;
    if (a.kind == Do::free && l.kind == Life::Kind::handle) x.must_not |= me;
    if (a.kind == Do::map && mapping) x.sets |= me;
    if (a.kind == Do::unmap && mapping) x.clears |= me, x.must |= me;
    if (l.kind != Life::Kind::handle) continue;
    if (a.kind == Do::export_handle) x.sets |= me, x.must_not |= me;
    if (a.kind == Do::close_handle) x.clears |= me, x.must |= me;
  }
  x.lives = lives.of(s, a.buffer, Place::host()) & ~own;
  if (a.kind == Do::alloc && !s.buffers[buffer].at) x.begins = {a.buffer.value, s.buffers[buffer].bytes};
  return x;
}

}  // namespace detail

/// What waits at a word that is not there, or may not be reached.
Violation Machine::present(Const s) const noexcept {
  const auto missing = ~s[lives_];
  for (std::size_t q = 0; q < p_.queues.size(); ++q) {
    const auto at = next(s, q);
    if (at == published(s, q) || holder(s, q) >= 0) continue;
    if ((p_.queues[q].packets[at].lives & missing) != 0 && p_.queues[q].packets[at].kind != Packet::Kind::data &&
        p_.queues[q].packets[at].kind != Packet::Kind::release)
      return {Violation::Kind::gone, {false, static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(at)}, {}};
  }
  for (std::size_t h = 0; h < p_.hosts.size(); ++h) {
    const auto at = position(s, h);
    const auto& script = p_.hosts[h].actions;
    if (at < script.size() && script[at].kind == Action::Kind::wait && (script[at].lives & missing) != 0)
      return {Violation::Kind::gone, {true, static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(at)}, {}};
  }
  return {};
}

/// The lives that the L2 of a kernel's GPU needs for what the kernel has stored there.
std::uint64_t Machine::in_l2(Const s, std::size_t h) const noexcept {
  auto cells = mask(s, unreleased(h));
  for (std::size_t i = 0; i < p_.shadows.size(); ++i)
    if (const auto& x = p_.shadows[i]; x.gpu == p_.hosts[h].gpu && (s[dirty_] >> i & 1) != 0)
      cells |= Program::mask(x.memory);
  std::uint64_t lives = 0;
  for (std::size_t c = 0; c < p_.cells.size(); ++c)
    if ((cells >> c & 1) != 0)
      lives |=
          p_.lives.of(*p_.schedule, GpuVa{p_.cells[c].va}, Place::gpu(static_cast<std::uint32_t>(p_.hosts[h].gpu)));
  return lives;
}

/// A thread ends or begins lives.
Violation Machine::change_lives(State s, std::size_t h, const Action& a) const noexcept {
  const Violation::Place me{true, static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(position(s, h))};
  const Violation wrong{Violation::Kind::gone, me, me};
  if ((a.must & ~s[lives_]) != 0 || (a.must_not & s[lives_]) != 0) return wrong;
  const auto ends = a.clears & s[lives_];
  for (std::size_t q = 0; q < p_.queues.size(); ++q)
    for (auto bits = open(s, q); bits != 0; bits &= bits - 1) {
      const auto i = static_cast<std::size_t>(__builtin_ctzll(bits));
      if ((p_.queues[q].packets[i].lives & ends) != 0)
        return {Violation::Kind::gone, me, {false, static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(i)}};
    }
  for (std::size_t o = 0; o < p_.hosts.size(); ++o)
    if (const auto* other = accessing(s, o); other && (other->lives & ends) != 0)
      return {Violation::Kind::gone,
              me,
              {true, static_cast<std::uint8_t>(o), static_cast<std::uint8_t>(position(s, o) - 1)}};
  for (std::size_t o = 0; o < p_.hosts.size(); ++o)
    if (p_.hosts[o].gpu >= 0 && (in_l2(s, o) & ends) != 0) return {Violation::Kind::gone, me, {}};
  s[lives_] = (s[lives_] & ~a.clears) | a.sets;
  for (std::size_t c = 0; c < p_.cells.size(); ++c)
    if (p_.cells[c].va - a.begins.first < a.begins.second) s[c] = p_.cells[c].value;
  return {};
}

}  // namespace sdma::explore
