// SPDX-License-Identifier: MIT
// Unrolls a schedule into the steps of its agents: every submit of a
// queue, every round of a host thread, as far as the limits allow.
#include "model.hpp"

#include <algorithm>

namespace sdma::inline v0::check_detail {
namespace {

/// How many entries the clocks may have, of 4 bytes each.
constexpr std::size_t kMostClocks = std::size_t{1} << 27;
/// How many times a packet may access a row of bytes, in all submits.
constexpr std::size_t kMostAccesses = std::size_t{1} << 24;

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
  const auto most_columns = columns_ + (apart ? program.posts : program.stored_flags);
  if (packets + rounds_ + items.size() > options.max_packets || accesses_ > kMostAccesses ||
      acquires_ * (agents.size() + most_columns) > kMostClocks) {
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
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    if (item.sync.word == kNone) continue;
    const auto kind = item.what == What::poll ? Step::Kind::poll : item.flag() ? Step::Kind::flag : Step::Kind::post;
    q.steps.push_back({.kind = kind,
                       .op = item.sync.op,
                       .position = first + i + 1,
                       .source = i,
                       .epoch = q.submits,
                       .sync = &item.sync,
                       .value = item.sync.value.at(q.submits)});
    if (kind == Step::Kind::flag || (kind == Step::Kind::post && apart))
      q.steps.back().column = static_cast<std::uint32_t>(agents.size() + columns_++);
    waits += item.what == What::poll;
  }
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
        if (packets + ++rounds_ > options.max_packets) truncated = true;
        perform(agent, a.body, action, static_cast<std::uint32_t>(n), named);
      }
    } else {
      const bool wait = a.kind == Kind::wait, sample = a.kind == Kind::sample,
                 bytes = a.kind == Kind::load || a.kind == Kind::store || a.kind == Kind::expect;
      auto& steps = agents[agent].steps;
      acquires_ += wait;
      accesses_ += bytes + (a.right.bytes != 0) + a.sum.parts.size();
      if (acquires_ * (agents.size() + columns_) > kMostClocks || accesses_ > kMostAccesses) {
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
                .value = a.value.plus.at(epoch)};
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
  if (const auto l = find_symbol(schedule, a.signal)) y.bytes = static_cast<std::uint8_t>(bytes_of(schedule, *l));
  if (a.kind == Kind::set || a.kind == Kind::wait || a.kind == Kind::add || a.kind == Kind::sample) y.word = 0;
  return y;
}

void Model::unroll() {
  const auto actors = detail::actors(schedule);
  agents.resize(programs.size() + actors.size());
  for (auto& p : programs)
    if (p.flags && profile.writes_ordered) p.column = static_cast<std::uint32_t>(agents.size() + columns_++);
  for (std::uint32_t q = 0; q < programs.size(); ++q) agents[q].index = q;
  actions_.resize(actors.size());
  action_syncs_.resize(actors.size());
  for (std::uint32_t i = 0; i < actors.size(); ++i) {
    const auto agent = queue_count() + i;
    const auto hosts = static_cast<std::uint32_t>(schedule.hosts.size());
    agents[agent].kind = i < hosts ? Agent::Kind::host : Agent::Kind::kernel;
    agents[agent].index = i < hosts ? i : i - hosts;
    const auto collect = [&](const auto& self, const std::vector<Schedule::Action>& actions) -> void {
      for (const auto& a : actions) {
        actions_[i].push_back(&a);
        action_syncs_[i].push_back(sync_of(a));
        self(self, a.body);
      }
    };
    collect(collect, *actors[i].actions);
    std::uint32_t action = 0;
    Named named;
    perform(agent, *actors[i].actions, action, 0, named);
  }
  if (!detail::submits_queues(schedule))
    for (std::uint32_t q = 0; q < programs.size(); ++q) submit(kNone, q, 0, 0);
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

}  // namespace sdma::inline v0::check_detail
