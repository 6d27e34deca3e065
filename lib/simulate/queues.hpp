// SPDX-License-Identifier: MIT
#pragma once
// Packets of a queue, in ring order: what each waits for, and the words that it changes.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class Time> std::uint64_t World<Time>::ticks(void* self) noexcept {
  return static_cast<std::uint64_t>(lead(static_cast<World*>(self)->now_) / 10);
}

template <class Time> Machine World<Time>::machine(const Program& q) noexcept {
  return {.memory = memory_->reader(q.gpu),
          .state = engines_[q.engine].state,
          .ticks = {&World::ticks, this},
          .engine = EngineId{engines_[q.engine].id}};
}

template <class Time> Outcome World<Time>::execute_now(const Program& q, const Fetched& f) {
  auto m = machine(q);
  const auto done = typed(f, m.memory, [&](const auto& p) {
    if constexpr (kRefused<std::remove_cvref_t<decltype(p)>>) return Outcome::lost;
    else return execute(p, m);
  });
  if (done == Outcome::lost) find(q.name, "memory that a packet needs is not mapped");
  return done;
}

/// The queue has stopped: its front end knows the fault.
template <class Time> void World<Time>::refused(const Program& q) {
  const auto& f = q.front->fault();
  const auto name = name_of(s_, f.va);
  find("queue " + q.name, describe(f) + (name.empty() ? "" : " (" + name + ")"),
       "on hardware: " + std::string(on_hardware(f.kind)));
}

template <class Time> void World<Time>::doorbell(std::uint32_t queue, std::uint64_t position, std::uint32_t cause) {
  auto& q = programs_[queue];
  if (!q.front->doorbell(position, nullptr)) return refused(q);
  const auto begin = std::exchange(q.rung, position);
  if (q.state != State::idle || q.in_flight > 0) q.later.push_back(begin);
  if constexpr (!std::is_same_v<Time, double>) q.doorbells.emplace_back(position, now_);
  if (q.state != State::idle) return;
  q.node = node(now_, cause, engines_[q.engine].where, What::fetches, Phase::schedule, queue);
  if (o_.recorder) arrow_from(q, cause);
  next_packet(queue);
}

template <class Time> void World<Time>::next_packet(std::uint32_t queue) {
  auto& q = programs_[queue];
  q.state = State::idle;
  if (q.front->load()) return want_front(queue);
  if (q.front->fault()) refused(q);
}

/// The current packet has taken effect.
template <class Time> void World<Time>::finish(std::uint32_t queue, Outcome outcome) {
  const auto& q = programs_[queue];
  if (o_.recorder) o_.recorder->packet_end(q.lane, ns(), q.front->current().position);
  consume(queue, outcome);
}

template <class Time> void World<Time>::consume(std::uint32_t queue, Outcome outcome) {
  auto& q = programs_[queue];
  ++totals_.packets;
  const bool goes_on = q.front->consume(outcome);
  q.rptr = q.front->read();
  q.read = higher(q.read, now_);
  settled();
  for (const auto thread : std::exchange(q.blocked, {})) {
    threads_[thread].node = node(now_, q.node, threads_[thread].where, What::room, Phase::control, queue);
    at(after(threads_[thread].free), Event::thread, thread);
  }
  if (!goes_on) return refused(q);
  next_packet(queue);
}

/// A poll sees that its word is as it waits for: in each lane when it reads it, or a poll's time after the change.
template <class Time> void World<Time>::sees(const Program& q, bool woken) {
  if constexpr (!std::is_same_v<Time, double>) {
    const auto word = q.front->current().word;
    const auto since = changed(word);
    const auto later = woken ? now_ : since + cost(Cost::engine_poll) + flight(q.gpu, memory_->home(word));
    now_ = led(seen(since, woken ? q.looked : now_, later), lead(now_));
  }
}

/// The front end has decoded the next packet.
template <class Time> void World<Time>::act(std::uint32_t queue) {
  auto& q = programs_[queue];
  const auto& next = q.front->current();
  switch (next.role) {
    case Role::data: return launch(queue);
    case Role::release:
    case Role::stamp:
      if (engines_[q.engine].network) return launch(queue);
      if (q.in_flight == 0) return drained(queue);
      q.state = State::drain;
      return;
    case Role::acquire:
      q.state = State::look;
      at(now_ + 2.0 * flight(q.gpu, memory_->home(next.word)), Event::look, queue, q.node);
      return;
    case Role::control:
      at(now_ + (next.word == GpuVa{} ? Time{} : 2.0 * flight(q.gpu, memory_->home(next.word))), Event::decide, queue);
      return;
    case Role::none:
    case Role::notify: break;
  }
  execute_now(q, next);
  finish(queue);
}

/// If the word of the current packet does not have its value, the queue waits until the word changes.
template <class Time> bool World<Time>::waits_for_word(std::uint32_t queue) {
  auto& q = programs_[queue];
  auto m = machine(q);
  if (met(q.front->current(), m)) return false;
  q.state = State::waits;
  q.looked = now_;
  settled();
  waiters_[q.front->current().word.value / 8].push_back({.id = queue});
  return true;
}

/// A poll has read its word. `cause`: the last change of the word, or the start of the poll.
template <class Time> void World<Time>::look(std::uint32_t queue, std::uint32_t cause) {
  auto& q = programs_[queue];
  const bool woken = q.state == State::waits;
  if (waits_for_word(queue)) return;
  const auto& next = q.front->current();
  sees(q, woken);
  q.node = node(now_, cause, engines_[q.engine].where, What::polls, Phase::schedule, queue);
  if (o_.recorder) arrow_from(q, cause);
  if (next.role == Role::release) return drained(queue);  // a looping atomic
  if (execute_now(q, next) != Outcome::not_yet) finish(queue);
}

/// The word of a condition, or an indirect buffer, has been read.
template <class Time> void World<Time>::decide(std::uint32_t queue) {
  auto& q = programs_[queue];
  q.node = node(now_, q.node, engines_[q.engine].where, What::reads, Phase::schedule, queue);
  finish(queue, execute_now(q, q.front->current()));
}

/// Everything earlier has landed: the release or the timestamp is sent.
template <class Time> void World<Time>::drained(std::uint32_t queue) {
  auto& q = programs_[queue];
  const auto& next = q.front->current();
  now_ = after(q.landed);
  if (q.landed_node != 0 && nodes_[q.landed_node].t > nodes_[q.node].t) q.node = q.landed_node;
  if (next.role == Role::stamp) {
    execute_now(q, next);
    return finish(queue);
  }
  if (waits_for_word(queue)) return;
  const auto home = memory_->home(next.word);
  auto end = higher(now_ + cost(Cost::engine_release) + flight(q.gpu, home), q.last_release);
  auto last = node(end, q.node, engines_[q.engine].where, What::releases, Phase::sync, queue);
  if (home.is_host() && next.info == &info_of<Atomic>()) {
    auto& word = words_[next.word.value / 8];
    end = served(word, end, times_.strayed) + cost(Cost::host_atomic);
    word.free = end;
    last = node(end, last, engines_[q.engine].where, What::atomics, Phase::sync, queue);
  }
  q.last_release = end;
  q.releases.push_back(next);
  at(end, Event::release, queue, last);
  if (some(Cost::engine_occupied)) return occupy(queue);
  consume(queue);
}

template <class Time> void World<Time>::release(std::uint32_t queue, std::uint32_t cause) {
  auto& q = programs_[queue];
  const auto packet = q.releases.front();
  q.releases.pop_front();
  last_ = lead(now_);
  last_node_ = cause;
  execute_now(q, packet);
  const auto va = packet.word;
  if (o_.recorder) {
    o_.recorder->packet_end(q.lane, ns(), packet.position);
    std::uint64_t v = 0;
    if (const auto l = find_symbol(s_, va); l && l->signal) v = memory_->value(l->index);
    o_.recorder->signal(q.lane, ns(), va, v);
    if (q.arrow != 0) o_.recorder->flow_end(q.lane, ns(), std::exchange(q.arrow, 0));
  }
  notify({.va = va, .bytes = 8}, cause);
}

/// Begins an arrow from a trigger to the completion that it leads to.
template <class Time> void World<Time>::arrow_from(Program& q, std::uint32_t cause) {
  if (q.arrow != 0) return;
  q.arrow = o_.recorder->new_flow();
  o_.recorder->flow_begin(lane(nodes_[cause]), static_cast<std::uint64_t>(lead(nodes_[cause].t) + 0.5), q.arrow);
}

/// Bytes have changed: each waiter for a word in them reads it again.
template <class Time> void World<Time>::notify(const Region& r, std::uint32_t cause) {
  const auto first = r.va.value / 8, last = (r.va.value + std::max<std::uint64_t>(r.bytes, 1) - 1) / 8;
  if constexpr (!std::is_same_v<Time, double>)
    for (auto key = first; last - first <= 8 && key <= last; ++key)
      if (auto& t = changed_[key]; true) t = higher(t, now_);
  const auto wake = [&](std::uint64_t key, std::vector<Waiter> all) {
    for (const auto& w : all) {
      if (!w.thread) {
        const auto& q = programs_[w.id];
        const auto home = memory_->home(q.front->current().word);
        at(now_ + cost(Cost::engine_poll) + flight(q.gpu, home), Event::look, w.id, cause);
      } else if (auto& t = threads_[w.id]; holds(t)) {
        saw(t, w.id, cause);
      } else {
        waiters_[key].push_back(w);
      }
    }
  };
  if (last - first > 8) {
    std::vector<std::uint64_t> keys;
    for (const auto& [key, all] : waiters_)
      if (key >= first && key <= last && !all.empty()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const auto key : keys) wake(key, std::exchange(waiters_[key], {}));
    return;
  }
  for (auto key = first; key <= last; ++key)
    if (const auto found = waiters_.find(key); found != waiters_.end() && !found->second.empty())
      wake(key, std::exchange(found->second, {}));
}

}}}  // namespace sdma::v0_3::detail
