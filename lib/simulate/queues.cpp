// SPDX-License-Identifier: MIT
// Packets of a queue, in ring order: what each waits for, and the words that it changes.
#include "world.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

std::uint64_t World::ticks(void* self) noexcept {
  return static_cast<std::uint64_t>(static_cast<World*>(self)->now_ / 10);
}

Machine World::machine(const Program& q) noexcept {
  return {.memory = memory_->reader(q.gpu),
          .state = engines_[q.engine].state,
          .ticks = {&World::ticks, this},
          .engine = EngineId{engines_[q.engine].id}};
}

Outcome World::execute_now(const Program& q, const Fetched& f) {
  auto m = machine(q);
  const auto done = typed(f, m.memory, [&](const auto& p) {
    if constexpr (kRefused<std::remove_cvref_t<decltype(p)>>) return Outcome::lost;
    else return execute(p, m);
  });
  if (done == Outcome::lost) find(q.name, "memory that a packet needs is not mapped");
  return done;
}

/// The queue has stopped: its front end knows the fault.
void World::refused(const Program& q) {
  const auto& f = q.front->fault();
  const auto name = name_of(s_, f.va);
  find("queue " + q.name, describe(f) + (name.empty() ? "" : " (" + name + ")"),
       "on hardware: " + std::string(on_hardware(f.kind)));
}

void World::doorbell(std::uint32_t queue, std::uint64_t position, std::uint32_t cause) {
  auto& q = programs_[queue];
  if (!q.front->doorbell(position, nullptr)) return refused(q);
  const auto begin = std::exchange(q.rung, position);
  if (q.state != State::idle || q.in_flight > 0) q.later.push_back(begin);
  if (q.state != State::idle) return;
  q.node = node(now_, cause, engines_[q.engine].where, What::fetches, Phase::schedule, queue);
  if (o_.recorder) arrow_from(q, cause);
  next_packet(queue);
}

void World::next_packet(std::uint32_t queue) {
  auto& q = programs_[queue];
  q.state = State::idle;
  if (q.front->load()) return want_front(queue);
  if (q.front->fault()) refused(q);
}

/// The current packet has taken effect.
void World::finish(std::uint32_t queue, Outcome outcome) {
  const auto& q = programs_[queue];
  if (o_.recorder) o_.recorder->packet_end(q.lane, ns(), q.front->current().position);
  consume(queue, outcome);
}

void World::consume(std::uint32_t queue, Outcome outcome) {
  auto& q = programs_[queue];
  ++totals_.packets;
  const bool goes_on = q.front->consume(outcome);
  q.rptr = q.front->read();
  settled();
  for (const auto thread : std::exchange(q.blocked, {})) {
    threads_[thread].node = node(now_, q.node, threads_[thread].where, What::room, Phase::control, queue);
    at(now_, Event::thread, thread);
  }
  if (!goes_on) return refused(q);
  next_packet(queue);
}

/// The front end has decoded the next packet.
void World::act(std::uint32_t queue) {
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
      at(now_ + 2 * flight(q.gpu, memory_->home(next.word)), Event::look, queue, q.node);
      return;
    case Role::control:
      at(now_ + (next.word == GpuVa{} ? 0 : 2 * flight(q.gpu, memory_->home(next.word))), Event::decide, queue);
      return;
    case Role::none:
    case Role::notify: break;
  }
  execute_now(q, next);
  finish(queue);
}

/// If the word of the current packet does not have its value, the queue waits until the word changes.
bool World::waits_for_word(std::uint32_t queue) {
  auto& q = programs_[queue];
  auto m = machine(q);
  if (met(q.front->current(), m)) return false;
  q.state = State::waits;
  settled();
  waiters_[q.front->current().word.value / 8].push_back({.id = queue});
  return true;
}

/// A poll has read its word. `cause`: the last change of the word, or the start of the poll.
void World::look(std::uint32_t queue, std::uint32_t cause) {
  auto& q = programs_[queue];
  if (waits_for_word(queue)) return;
  const auto& next = q.front->current();
  q.node = node(now_, cause, engines_[q.engine].where, What::polls, Phase::schedule, queue);
  if (o_.recorder) arrow_from(q, cause);
  if (next.role == Role::release) return drained(queue);  // a looping atomic
  if (execute_now(q, next) != Outcome::not_yet) finish(queue);
}

/// The word of a condition, or an indirect buffer, has been read.
void World::decide(std::uint32_t queue) {
  auto& q = programs_[queue];
  q.node = node(now_, q.node, engines_[q.engine].where, What::reads, Phase::schedule, queue);
  finish(queue, execute_now(q, q.front->current()));
}

/// Everything earlier has landed: the release or the timestamp is sent.
void World::drained(std::uint32_t queue) {
  auto& q = programs_[queue];
  const auto& next = q.front->current();
  if (q.landed_node != 0 && nodes_[q.landed_node].t > nodes_[q.node].t) q.node = q.landed_node;
  if (next.role == Role::stamp) {
    execute_now(q, next);
    return finish(queue);
  }
  if (waits_for_word(queue)) return;
  const auto home = memory_->home(next.word);
  auto end = std::max(now_ + cost(Cost::engine_release) + flight(q.gpu, home), q.last_release);
  auto last = node(end, q.node, engines_[q.engine].where, What::releases, Phase::sync, queue);
  if (home.is_host() && next.info == &info_of<Atomic>()) {
    auto& free = word_free_[next.word.value / 8];
    free = std::max(end, free) + cost(Cost::host_atomic);
    end = free;
    last = node(end, last, engines_[q.engine].where, What::atomics, Phase::sync, queue);
  }
  q.last_release = end;
  q.releases.push_back(next);
  at(end, Event::release, queue, last);
  if (cost(Cost::engine_occupied) > 0) return occupy(queue);
  consume(queue);
}

void World::release(std::uint32_t queue, std::uint32_t cause) {
  auto& q = programs_[queue];
  const auto packet = q.releases.front();
  q.releases.pop_front();
  last_ = now_;
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
void World::arrow_from(Program& q, std::uint32_t cause) {
  if (q.arrow != 0) return;
  q.arrow = o_.recorder->new_flow();
  o_.recorder->flow_begin(lane(nodes_[cause]), static_cast<std::uint64_t>(nodes_[cause].t + 0.5), q.arrow);
}

/// Bytes have changed: each waiter for a word in them reads it again.
void World::notify(const Region& r, std::uint32_t cause) {
  const auto first = r.va.value / 8, last = (r.va.value + std::max<std::uint64_t>(r.bytes, 1) - 1) / 8;
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
