// SPDX-License-Identifier: MIT
#pragma once
// Host threads, compute kernels, and the rounds that they begin and end.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include "../schedule/recorded.hpp"
#include "../schedule/sums.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class Time> void World<Time>::step(std::uint32_t id) {
  auto& t = threads_[id];
  while (findings_.empty() && !t.done)
    if (!perform(t, id)) return;
}

/// True if the action took no time, so that the next one can follow.
template <class Time> bool World<Time>::perform(Thread& t, std::uint32_t id) {
  using Kind = Schedule::Action::Kind;
  if (t.frames.empty()) {
    t.done = true;
    return true;
  }
  if (!spend(1, &t)) return false;
  auto& f = t.frames.back();
  if (f.next == f.actions->size()) {
    f.next = 0;
    if (++f.round > f.rounds) t.frames.pop_back();
    return true;
  }
  const auto& a = (*f.actions)[f.next];
  if (a.kind == Kind::submit) return submit(t, id, a);
  if (a.kind == Kind::rptr) return wait_rptr(t, id, a);
  if (a.kind == Kind::set && !t.kernel() && early(id, find_symbol(s_, a.signal)->index)) return false;
  ++f.next;
  if (a.kind == Kind::repeat) {
    if (a.rounds > 0) t.frames.push_back({.actions = &a.body, .round = 1, .rounds = a.rounds});
    return true;
  }
  if (detail::is_lifetime(a)) return true;  // its cost is not known: docs/simulate.md
  if (t.kernel()) round_begins(false);
  if (a.kind == Kind::compute || a.range.bytes != 0) {
    const auto round = f.round;
    begin_action(t, [&] { return action_text(s_, a); });
    if (a.kind == Kind::compute)
      works(t, id, static_cast<double>(a.ns), {{memories_[t.place.index], static_cast<double>(a.hbm)}},
            cost(Cost::hbm_weight));
    else if (a.kind == Kind::store && a.sum) add(t, id, a);
    else access(t, id, a, round);
    return false;
  }
  const auto signal = find_symbol(s_, a.signal)->index;
  if (a.kind == Kind::sample) {
    sample(t, id, a);
    return false;
  }
  const auto value = t.samples.at(a.value, f.round);
  if (s_.signals[signal].bits == 32 && value > ~std::uint32_t{}) {
    find(where(t), too_wide(value, t.frames.size() > 1 ? f.round : 0));
    return false;
  }
  const bool waits = a.kind == Kind::wait;
  begin_action(
      t, [&] { return action_text(s_, a); }, value, waits ? memory_->resolve(a.signal) : GpuVa{});
  if (waits) {
    wait(t, id, signal, a.func, value);
    return false;
  }
  const Store st{.signal = signal, .value = value, .add = a.kind == Kind::add};
  if (t.kernel()) {
    store(t, id, release(t), What::releases_kernel, Phase::sync, st);
  } else {
    round_begins(true);
    store(t, id, cost(Cost::host_store), What::sets, Phase::schedule, st);
  }
  return false;
}

/// Waits until the engine has read what was submitted when the wait began, as for room in the ring.
template <class Time> bool World<Time>::wait_rptr(Thread& t, std::uint32_t id, const Schedule::Action& a) {
  auto& q = programs_[a.queues.front()];
  if (!t.blocked) {
    t.reference = q.ring->positions().committed;
    begin_action(t, [&] { return action_text(s_, a); });
  }
  t.blocked = q.rptr < t.reference;
  if (t.blocked) return t.free = now_, q.blocked.push_back(id), false;
  ++t.frames.back().next;
  const auto took = cost(Cost::host_poll);
  const auto end = after(q.read) + took;
  t.busy_ns += lead(took);
  end_action(t, end);
  t.node = node(end, t.node, t.where, What::looks, Phase::sync);
  at(end, Event::thread, id);
  return false;
}

/// Takes as long as a look that finds a wait satisfied, and says what the word held when it began.
template <class Time> void World<Time>::sample(Thread& t, std::uint32_t id, const Schedule::Action& a) {
  const auto signal = find_symbol(s_, a.signal)->index;
  const auto seen = memory_->value(signal);
  t.free = now_;
  t.samples.set(a.value.sample, seen);
  begin_action(
      t, [&] { return action_text(s_, a); }, seen);
  look(t, id, signal, t.node, false);
}
/// The thread reads a word, which has held its value since `cause`, and then continues. `waited`: this ends a wait.
template <class Time>
void World<Time>::look(Thread& t, std::uint32_t id, std::size_t signal, std::uint32_t cause, bool waited) {
  const auto took = Time{t.kernel() ? acquire(t) : cost(Cost::host_poll)} + flight(t, signal);
  t.busy_ns += lead(took);
  const auto end = after(higher(t.free, changed(memory_->resolve(link_signal(signal))))) + took;
  end_action(t, end);
  t.node = node(end, cause, t.where, What::looks, Phase::sync);
  at(end, Event::thread, id, waited);
}

/// How long a kernel takes until others may see its stores, and until it may read those of others.
template <class Time> Time World<Time>::release(const Thread& t) const noexcept {
  using Protocol = Schedule::Protocol;
  if (t.of->protocol == Protocol::ll) return cost(Cost::kernel_ll);
  if (t.of->protocol == Protocol::tracked) return cost(Cost::kernel_tracked);
  return cost(Cost::kernel_release) + (t.of->protocol == Protocol::simple ? cost(Cost::kernel_step) : Time{});
}
template <class Time> Time World<Time>::acquire(const Thread& t) const noexcept {
  if (t.of->protocol == Schedule::Protocol::ll) return Time{};
  return cost(t.of->protocol == Schedule::Protocol::tracked ? Cost::kernel_tracked : Cost::kernel_poll);
}

/// Records that a thread begins an action now, which `text` describes. `end_action` ends it.
template <class Time>
template <class Text>
void World<Time>::begin_action(Thread& t, Text&& text, std::uint64_t value, GpuVa waits_for) {
  if (o_.recorder) o_.recorder->action_begin(t.lane, ns(), o_.recorder->text(text()), value, waits_for);
}
template <class Time> void World<Time>::end_action(const Thread& t, const Time& end) {
  if (o_.recorder) o_.recorder->action_end(t.lane, static_cast<std::uint64_t>(lead(end) + 0.5));
}

/// A trigger finds its queues at their polls, because work is published long before it: a `set` that begins a round is
/// held until each queue whose last submit begins with a poll of that word has reached a poll.
template <class Time> bool World<Time>::early(std::uint32_t id, std::size_t signal) {
  if (std::exchange(forced_, false) || round_.triggered()) return false;
  const auto word = memory_->resolve(link_signal(signal));
  for (const auto& q : programs_) {
    if (q.head != word || q.epoch == 0 || q.state == State::waits || q.front->read() > q.head_position) continue;
    threads_[id].free = now_;
    settling_.push_back(id);
    return true;
  }
  return false;
}

/// A queue has come further: held triggers look again.
template <class Time> void World<Time>::settled() {
  for (const auto id : settling_) at(after(threads_[id].free), Event::thread, id);
  settling_.clear();
}

/// Nothing else moves any more, so a held trigger has waited long enough.
template <class Time> bool World<Time>::release_trigger() {
  if (settling_.empty()) return false;
  forced_ = true;
  at(after(threads_[settling_.back()].free), Event::thread, settling_.back());
  settling_.pop_back();
  return true;
}

/// The engine sees the doorbell one flight later; a kernel's doorbell for its own GPU stays inside the GPU. Reading the
/// ring's first lines, from the host's memory, takes a round trip.
template <class Time> Time World<Time>::fetch_flights(const Thread& t, const Program& q) const noexcept {
  const auto doorbell = t.kernel() ? flight(t.place.index, Place::gpu(q.gpu)) : cost(Cost::pcie_flight);
  return doorbell + 2.0 * cost(Cost::pcie_flight);
}

/// Builds and publishes one piece of one queue at a time, and rings its doorbell.
template <class Time> bool World<Time>::submit(Thread& t, std::uint32_t id, const Schedule::Action& a) {
  if (t.queue == a.queues.size()) {
    t.queue = 0;
    ++t.frames.back().next;
    return true;
  }
  const auto number = static_cast<std::uint32_t>(a.queues[t.queue]);
  auto& q = programs_[number];
  if (t.piece == 0 && !t.blocked) {
    if (!q.source->epochs.empty() && store_epoch(*q.source, q.epoch + 1, q.linked.dwords)) {
      find(t.name + ": submit " + q.name, fmt::format("a value of epoch {} does not fit in its field", q.epoch + 1));
      return false;
    }
    ++q.epoch;
  }
  const auto& [ring, dwords, pieces] = q.linked;
  if (pieces.empty()) {
    ++t.queue;
    return true;
  }
  // A kernel rings the doorbell of another GPU over their link.
  const bool far = t.kernel() && !q.source->network && t.place != q.source->place;
  if (far && !reaches(t.place, q.source->place, t.name + ": submit " + q.name)) return false;
  round_begins(false);
  const auto& p = pieces[t.piece];
  const auto slot = q.ring->reserve(p.end - p.begin);
  if (!slot) {
    if (slot.error() != Errc::no_space) return find(q.name, std::string(message(slot.error()))), false;
    q.blocked.push_back(id);
    t.free = now_;
    t.blocked = true;
    return false;
  }
  t.blocked = false;
  const auto built = now_ + static_cast<double>(p.packets) * cost(Cost::host_build) +
                     cost(t.kernel() ? Cost::kernel_release : Cost::host_submit);
  const auto rung = built + (t.kernel() ? Time{} : cost(Cost::host_doorbell));
  const auto issued = rung + (t.kernel() ? Time{} : static_cast<double>(p.packets) * cost(Cost::host_issue));
  t.busy_ns += lead(issued) - lead(now_);
  const auto build = node(built, t.node, t.where, What::builds, Phase::control, number, p.packets);
  t.node = node(rung, build, t.where, What::rings, Phase::schedule, number);
  std::copy(dwords.begin() + static_cast<std::ptrdiff_t>(p.begin), dwords.begin() + static_cast<std::ptrdiff_t>(p.end),
            slot->dwords.begin());
  if (t.piece == 0) q.head_position = slot->begin;
  q.ring->publish(*slot, slot->dwords.size());
  ++totals_.doorbells;
  if (o_.recorder) {
    begin_action(
        t, [&] { return builds_text(q.name, p.packets); }, q.epoch);
    end_action(t, built);
    o_.recorder->action_begin(t.lane, static_cast<std::uint64_t>(lead(built) + 0.5),
                              o_.recorder->text(rings_text(q.name)));
    end_action(t, issued);
    o_.recorder->epoch(q.lane, ns(), slot->begin, q.epoch);
    o_.recorder->doorbell(q.lane, static_cast<std::uint64_t>(lead(rung) + 0.5), slot->end);
  }
  at(rung + fetch_flights(t, q) + cost(Cost::engine_fetch), Event::doorbell, number, t.node, slot->end);
  if (++t.piece == pieces.size()) t.piece = 0, ++t.queue;
  if (issued > rung) t.node = node(issued, t.node, t.where, What::rings, Phase::schedule, number);
  at(issued, Event::thread, id);
  return false;
}

/// A kernel computes, or a thread or a kernel is busy with bytes.
template <class Time> void World<Time>::compute(Thread& t, std::uint32_t id, const Time& ns, What what, Phase phase) {
  t.busy_ns += lead(ns);
  end_action(t, now_ + ns);
  t.node = node(now_ + ns, t.node, t.where, what, phase);
  at(now_ + ns, Event::thread, id);
}

/// A kernel computes for a time that it takes alone, and meanwhile exchanges bytes with some resources. They flow at
/// the rate at which it computes alone, or slower if others need a resource, or the compute units, too. The kernel gets
/// `weight` times as much of a full resource as another flow: rates grow together, and a byte of its flow is so many.
template <class Time>
void World<Time>::works(Thread& t, std::uint32_t id, const Time& ns, const std::map<std::uint32_t, Time>& bytes,
                        const Time& weight) {
  if (lead(ns) == 0) return compute(t, id, 0.0, What::computes, Phase::compute);
  t.since = lead(now_);
  Time most{};
  for (const auto& [resource, n] : bytes) most = higher(most, n);
  if (lead(most) == 0) most = ns;
  most /= weight;
  std::vector<typename Network<Time>::Use> uses{{t.pace, ns / most}};
  for (const auto& [resource, n] : bytes)
    if (lead(n) > 0) uses.push_back({resource, n / most});
  flows_changed_ = higher(flows_changed_, now_);
  t.flow = net_.start(now_, most, std::move(uses));
  own(t.flow, kOfThread | id);
  t.works = true;
  share_units(t.place);
}

/// Kernels of a GPU that together need more than its compute units are all slowed alike.
template <class Time> void World<Time>::share_units(Place gpu) {
  double needed = 0;
  for (const auto& t : threads_)
    if (t.place == gpu && t.works) needed += t.share();
  const auto pace = o_.clock / std::max(1.0, needed);
  for (const auto& t : threads_)
    if (t.place == gpu && lead(net_.resources()[t.pace].rate) != pace) net_.limit(t.pace, pace);
}

/// A kernel reads the parts of a sum and stores it, as fast as the slowest memory or link on the way.
template <class Time> void World<Time>::add(Thread& t, std::uint32_t id, const Schedule::Action& a) {
  if (o_.contents) {
    const auto sum = added(a.sum, [this](const auto& part) { return bytes(part); });
    std::copy(sum.begin(), sum.end(), bytes(a.range).begin());
  }
  std::map<std::uint32_t, Time> all;
  const auto workgroups = t.of->workgroups;
  double crossing = 0;
  const auto moves = [&](const Schedule::Range& r, bool reads) {
    const auto home = memory_->home(memory_->resolve(r.va));
    // What arrives is added where it is, and `hbm=` of the compute has what a tracked kernel itself exchanges.
    if (t.of->protocol == Schedule::Protocol::tracked && home == t.place) return;
    // With a flag in each word, as many bytes again go to another GPU.
    const bool flags = t.of->protocol == Schedule::Protocol::ll && home != t.place;
    const auto n = static_cast<double>(r.bytes) * (flags ? 2 : 1);
    all[memories_[place_index(home)]] += n;
    kernel_bytes_ += n;
    if (home == t.place) return;
    crossing += n;
    const auto from = reads ? home : t.place, to = reads ? t.place : home;
    const auto between = crossed(from, to, where(t));
    if (!between) return;
    const auto crosses = n / (workgroups > 0 ? cost(Cost::kernel_link) : Time{1.0});
    all[*between] += crosses;
    for (const auto shared : shares_[link(from, to)]) all[shared] += crosses;
  };
  for (const auto& part : a.sum.parts) moves(part, true);
  moves(a.range, false);
  Time ns{};
  if (workgroups > 0) ns = crossing / (workgroups * cost(Cost::kernel_workgroup));
  if (lead(ns) == 0)
    for (const auto& [resource, n] : all) ns = higher(ns, n / net_.resources()[resource].rate);
  works(t, id, ns, all);
}

template <class Time> void World<Time>::computed(std::uint32_t id) {
  auto& t = threads_[id];
  t.works = false;
  flows_changed_ = higher(flows_changed_, now_);
  net_.end(now_, t.flow);
  share_units(t.place);
  t.busy_ns += lead(now_) - t.since;
  end_action(t, now_);
  t.node = node(now_, t.node, t.where, What::computes, Phase::compute);
  at(now_, Event::thread, id);
}

/// Loads, stores or compares bytes at the rate of the memory that
/// is the slowest on the way: the accessing side's or the owner's.
template <class Time>
void World<Time>::access(Thread& t, std::uint32_t id, const Schedule::Action& a, std::uint64_t round) {
  const auto va = memory_->resolve(a.range.va);
  if (o_.contents && a.kind == Schedule::Action::Kind::store)
    detail::store(a, o_.seed, round, random_, {memory_->at(va), static_cast<std::size_t>(a.range.bytes)});
  if (o_.contents && a.kind == Schedule::Action::Kind::expect) compare(t, a);
  const auto rate = [&](Place p) { return cost(p.is_host() ? Cost::host_memory : Cost::hbm_rate); };
  const auto takes = [&](const Schedule::Range& r) {
    if (t.kernel()) kernel_bytes_ += static_cast<double>(r.bytes);
    return static_cast<double>(r.bytes) / lower(rate(t.place), rate(memory_->home(memory_->resolve(r.va))));
  };
  const auto ns = takes(a.range) + (a.old || a.right.bytes == 0 ? Time{} : takes(a.right));
  compute(t, id, ns, What::accesses, t.kernel() ? Phase::compute : Phase::control);
}

/// The thread continues after the time that the store takes, and the store lands one flight later.
template <class Time>
void World<Time>::store(Thread& t, std::uint32_t id, const Time& takes, What what, Phase phase, const Store& st) {
  const auto end = now_ + takes;
  end_action(t, end);
  t.busy_ns += lead(takes);
  t.node = node(end, t.node, t.where, what, phase);
  stores_.push_back(st);
  at(end + flight(t, st.signal), Event::store, static_cast<std::uint32_t>(stores_.size() - 1), t.node);
  at(end, Event::thread, id);
}

template <class Time> bool World<Time>::holds(const Thread& t) {
  return sdma::holds(memory_->value(t.signal), t.func, t.reference);
}

template <class Time>
void World<Time>::wait(Thread& t, std::uint32_t id, std::size_t signal, Compare func, std::uint64_t reference) {
  t.signal = signal;
  t.func = func;
  t.reference = reference;
  t.free = now_;
  if (holds(t)) return saw(t, id, t.node);
  t.waits = true;
  waiters_[memory_->resolve(link_signal(signal)).value / 8].push_back({.thread = true, .id = id});
}

/// The thread's word has its value since `cause`; the thread sees that later.
template <class Time> void World<Time>::saw(Thread& t, std::uint32_t id, std::uint32_t cause) {
  t.waits = false;
  look(t, id, t.signal, cause, true);
}

template <class Time> void World<Time>::store_lands(std::uint32_t index, std::uint32_t cause) {
  const auto& st = stores_[index];
  const auto value = st.add ? memory_->value(st.signal) + st.value : st.value;
  memory_->set(st.signal, value);
  if (o_.recorder) o_.recorder->signal(lane(nodes_[cause]), ns(), memory_->resolve(link_signal(st.signal)), value);
  notify({.va = memory_->resolve(link_signal(st.signal)), .bytes = 8}, cause);
}

template <class Time> void World<Time>::round_begins(bool by_set) {
  const bool complete = round_.complete();
  if (!round_.begins(by_set, now_)) return;
  if (complete) rounds_.push_back({round_.last()->begin, round_.last()->end});
  net_.account(now_, true);
  for (auto& e : engines_) e.busy_ns = 0, e.since = lead(now_);
  for (auto& t : threads_) t.busy_ns = 0;
  kernel_bytes_ = 0;
}

/// A wait of the first thread has ended, and with it the round, if no other wait follows.
template <class Time> void World<Time>::round_ends(const Thread& t) {
  if (&t != &threads_.front() || !round_.waited(now_)) return;
  end_node_ = t.node;
  snapshot();
}

template <class Time> void World<Time>::snapshot() {
  net_.account(now_, false);
  activity_ = activity();
  busy_.clear();
  if (times_alone_) return;
  for (const auto& t : threads_)
    busy_.push_back({.kind = t.kernel() ? Busy::Kind::agent : Busy::Kind::host, .name = t.name, .busy_ns = t.busy_ns});
  const auto add = [&](const Resource<Time>& r, double busy_ns) {
    // An engine is slower with some packets: what it moved, at the rate that it has with these.
    const bool engine = r.kind == Busy::Kind::engine && r.bytes > 0;
    busy_.push_back({.kind = r.kind,
                     .name = r.name,
                     .busy_ns = busy_ns,
                     .bytes = static_cast<std::uint64_t>((engine ? r.moved : r.bytes) + 0.5),
                     .rate = engine ? lead(r.rate) * r.moved / r.bytes : lead(r.rate)});
  };
  for (const auto& e : engines_)
    add(net_.resources()[e.resource], e.busy_ns + (e.open != 0 ? lead(now_) - e.since : 0));
  for (const auto& r : net_.resources())
    if (r.kind != Busy::Kind::engine && r.kind != Busy::Kind::agent && r.bytes > 0) add(r, r.busy_ns);
}

}}}  // namespace sdma::v0_3::detail
