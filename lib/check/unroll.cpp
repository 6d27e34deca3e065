// SPDX-License-Identifier: MIT
// Unrolls a schedule into the steps of its agents: every submit of a
// queue, every round of a host thread, as far as the limits allow.
#include "../schedule/lifetimes.hpp"
#include "model.hpp"

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

bool acts(const std::vector<Schedule::Action>& body) noexcept {
  return std::any_of(body.begin(), body.end(), [](const Schedule::Action& a) {
    using Kind = Schedule::Action::Kind;
    return a.kind == Kind::repeat ? acts(a.body) : a.kind != Kind::compute;
  });
}

}  // namespace

void Model::submit(std::uint32_t agent, std::uint32_t queue, std::uint32_t action, std::uint32_t epoch) {
  auto& q = agents[queue];
  const auto& program = programs[queue];
  const auto& items = program.items;
  const bool apart = !profile.fences_ordered && !profile.fence_full;
  acquires_ += program.acquires + 1;
  accesses_ += program.touches.size();
  const auto most_columns = columns_ + (apart || !program.apart.empty() ? program.posts : program.stored_flags);
  if (packets + rounds_ + items.size() > limits.packets || accesses_ > limits.accesses() ||
      acquires_ * (agents.size() + most_columns) > limits.clocks()) {
    truncated = true;
    return;
  }
  packets += items.size();
  const auto first = static_cast<std::uint32_t>(q.submits++ * items.size());
  Step begin{.kind = Step::Kind::begin, .position = first, .epoch = q.submits, .target = agent};
  if (agent != kNone) {
    auto& from = agents[agent];
    begin.target_position = static_cast<std::uint32_t>(from.steps.size()) + 1;
    from.steps.push_back({.kind = Step::Kind::submit,
                          .position = begin.target_position,
                          .source = action,
                          .epoch = epoch,
                          .target = queue});
    // The first step of a queue is the begin of its first submit.
    q.shared = q.shared || (!q.steps.empty() && q.steps.front().target != agent);
  }
  q.steps.push_back(begin);
  const auto read = [&] {
    if (program.rptr)
      q.steps.push_back({.kind = Step::Kind::read,
                         .op = Op::add,
                         .position = first + static_cast<std::uint32_t>(items.size()),
                         .epoch = q.submits,
                         .sync = &*program.rptr,
                         .value = 1});
  };
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    // A poll is read before it is satisfied; whether rptr then moves is unknown (E6), so it is taken to stay.
    const bool last = i + 1 == items.size();
    if (last && item.what != What::poll) read();
    if (item.sync.word == kNone) continue;
    const auto kind = item.what == What::poll ? Step::Kind::poll : item.flag() ? Step::Kind::flag : Step::Kind::post;
    q.steps.push_back({.kind = kind,
                       .op = item.sync.op,
                       .position = first + i + 1,
                       .source = i,
                       .epoch = q.submits,
                       .sync = &item.sync,
                       .value = item.sync.value.at(q.submits)});
    if (kind == Step::Kind::flag || (kind == Step::Kind::post && lands_apart(program, i)))
      q.steps.back().column = static_cast<std::uint32_t>(agents.size() + columns_++);
    waits += item.what == What::poll;
    if (last && item.what == What::poll) read();
  }
  if (items.empty()) read();
}

void Model::perform(std::uint32_t agent, const std::vector<Schedule::Action>& actions, std::uint32_t& action,
                    std::uint32_t epoch, Named& named) {
  using Kind = Schedule::Action::Kind;
  auto& syncs = action_syncs_[agent - queue_count()];
  for (const auto& a : actions) {
    const auto number = action++;
    if (truncated || a.kind == Kind::compute) continue;
    if (a.kind == Kind::submit) {
      for (const auto q : a.queues)
        if (!truncated) submit(agent, static_cast<std::uint32_t>(q), number, epoch);
    } else if (a.kind == Kind::repeat) {
      const auto body = action;
      // Rounds without any action, of which there may be many, are all over at once.
      const auto rounds = acts(a.body) ? a.rounds : std::min<std::uint64_t>(a.rounds, 1);
      for (std::uint64_t n = 1; n <= rounds && !truncated; ++n) {
        action = body;
        // A round without packets takes time, too.
        if (packets + ++rounds_ > limits.packets) truncated = true;
        perform(agent, a.body, action, static_cast<std::uint32_t>(n), named);
      }
    } else if (detail::is_lifetime(a)) {
      auto& steps = agents[agent].steps;
      steps.push_back({.kind = Step::Kind::life,
                       .position = static_cast<std::uint32_t>(steps.size()) + 1,
                       .source = number,
                       .epoch = epoch});
    } else {
      const bool rptr = a.kind == Kind::rptr, wait = a.kind == Kind::wait || rptr, sample = a.kind == Kind::sample,
                 bytes = a.kind == Kind::load || a.kind == Kind::store || a.kind == Kind::expect;
      auto& steps = agents[agent].steps;
      acquires_ += wait;
      accesses_ += bytes + (a.right.bytes != 0) + a.sum.parts.size();
      if (acquires_ * (agents.size() + columns_) > limits.clocks() || accesses_ > limits.accesses()) {
        truncated = true;
        continue;
      }
      Step step{.kind = bytes    ? Step::Kind::touch
                        : wait   ? Step::Kind::poll
                        : sample ? Step::Kind::sample
                                 : Step::Kind::post,
                .op = a.kind == Kind::add ? Op::add : Op::store,
                .position = static_cast<std::uint32_t>(steps.size()) + 1,
                .source = number,
                .epoch = epoch,
                .sync = bytes ? nullptr : &syncs[number],
                .value = rptr ? agents[a.queues.front()].submits : a.value.plus.at(epoch)};
      if (sample) {
        named[a.value.sample] = static_cast<std::uint32_t>(steps.size());
        ++samples;
      } else if (const auto from = named.find(a.value.sample); from != named.end()) {
        step.sample = from->second;
        ++steps[from->second].uses;
      }
      steps.push_back(step);
      waits += wait;
    }
  }
}

/// The poll or post of an action. Without one, it has no word.
Sync Model::sync_of(const Schedule::Action& a) const {
  using Kind = Schedule::Action::Kind;
  Sync y{.op = a.kind == Kind::add ? Op::add : Op::store, .func = a.func, .value = a.value.plus};
  y.address = canonical(a.signal);
  if (a.kind == Kind::rptr) return *programs[a.queues.front()].rptr;
  if (find_symbol(schedule, a.signal)) y.bytes = static_cast<std::uint8_t>(detail::word_bytes(schedule, a.signal));
  if (a.kind == Kind::set || a.kind == Kind::wait || a.kind == Kind::add || a.kind == Kind::sample) y.word = 0;
  return y;
}

void Model::unroll() {
  const auto actors = detail::actors(schedule);
  agents.resize(programs.size() + actors.size());
  for (auto& p : programs)
    if (p.flags && profile.writes_ordered) p.column = static_cast<std::uint32_t>(agents.size() + columns_++);
  for (std::uint32_t q = 0; q < programs.size(); ++q) agents[q].index = q;
  detail::each_action(schedule, [&](const Schedule::Action& a) {
    if (a.kind == Schedule::Action::Kind::rptr)
      programs[a.queues.front()].rptr = {
          .word = 0, .op = Op::add, .bytes = 8, .func = Compare::ge, .address = kRptrWords + 8 * a.queues.front()};
  });
  actions_.resize(actors.size());
  action_syncs_.resize(actors.size());
  for (std::uint32_t i = 0; i < actors.size(); ++i) {
    const auto agent = queue_count() + i;
    const auto hosts = static_cast<std::uint32_t>(schedule.hosts.size());
    agents[agent].kind = i < hosts ? Agent::Kind::host : Agent::Kind::kernel;
    agents[agent].index = i < hosts ? i : i - hosts;
    detail::each_action(*actors[i].actions, [&](const Schedule::Action& a) {
      actions_[i].push_back(&a);
      action_syncs_[i].push_back(sync_of(a));
    });
    std::uint32_t action = 0;
    Named named;
    perform(agent, *actors[i].actions, action, 0, named);
  }
  const bool submits = detail::submits_queues(schedule);
  if (!submits)
    for (std::uint32_t q = 0; q < programs.size(); ++q) submit(kNone, q, 0, 0);
  if (!truncated) return;
  Needs n;
  n.submits.resize(programs.size());
  double pairs = 0;  // of submits, of queues that threads share
  for (const auto& a : actors) {
    const auto before = n.submits;
    count(*a.actions, 1, n);
    for (std::size_t q = 0; q < programs.size(); ++q)
      if (before[q] > 0 && n.submits[q] > before[q]) pairs = std::max(pairs, n.submits[q] * n.submits[q]);
  }
  Schedule::Action all{.kind = Schedule::Action::Kind::submit};
  for (std::uint32_t q = 0; q < programs.size(); ++q) all.queues.push_back(q);
  if (!submits) count({all}, 1, n);
  const Limits one{1};
  const auto clocks = n.acquires * (static_cast<double>(agents.size()) + n.columns);
  const auto most = std::max(
      {n.packets, pairs, clocks / static_cast<double>(one.clocks()), n.accesses / static_cast<double>(one.accesses())});
  needed = most < 1e15 ? static_cast<std::size_t>(std::ceil(most)) : 0;
}

void Model::count(const std::vector<Schedule::Action>& actions, double times, Needs& n) const {
  using Kind = Schedule::Action::Kind;
  const bool apart = !profile.fences_ordered && !profile.fence_full;
  for (const auto& a : actions) {
    if (a.kind == Kind::submit)
      for (const auto q : a.queues) {
        const auto& p = programs[q];
        n.submits[q] += times;
        n.packets += times * static_cast<double>(p.items.size());
        n.acquires += times * static_cast<double>(p.acquires + 1);
        n.accesses += times * static_cast<double>(p.touches.size());
        n.columns += times * static_cast<double>(apart || !p.apart.empty() ? p.posts : p.stored_flags);
      }
    if (a.kind == Kind::repeat) {
      const auto rounds = times * static_cast<double>(acts(a.body) ? a.rounds : std::min<std::uint64_t>(a.rounds, 1));
      n.packets += rounds;
      count(a.body, rounds, n);
    }
    n.acquires += a.kind == Kind::wait || a.kind == Kind::rptr ? times : 0;
    const bool bytes = a.kind == Kind::load || a.kind == Kind::store || a.kind == Kind::expect;
    if (bytes) n.accesses += times * static_cast<double>(1 + (a.right.bytes != 0) + a.sum.parts.size());
  }
}

/// Completes the posts that land on their own, once all polls are known.
void Model::cover_columns() {
  for (std::uint32_t a = 0; a < agents.size(); ++a) {
    auto poll = kNone;
    auto& steps = agents[a].steps;
    for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
      if (s->kind == Step::Kind::poll && profile.poll_full) poll = s->position;
      if (s->column == kNone) continue;
      const bool fences =
          s->kind == Step::Kind::flag && (profile.fence_covers_writes || item_at(a, s->position)->what != What::write);
      s->covered = fences ? s->position : std::min(poll, next_barrier(a, s->position));
    }
  }
}

}}}  // namespace sdma::v0_3::check_detail
