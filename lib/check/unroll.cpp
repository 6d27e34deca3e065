// Unrolls a schedule into the steps of its agents: every submit of a queue, every round of a host thread, as far as the limits allow.
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
    return a.kind != Schedule::Action::Kind::repeat || acts(a.body);
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
  const auto most_columns = columns_ + program.posts;
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

void Model::host(std::uint32_t agent, const std::vector<Schedule::Action>& actions, std::uint32_t& action,
                 std::uint32_t epoch) {
  using Kind = Schedule::Action::Kind;
  auto& syncs = host_syncs_[agents[agent].index];
  for (const auto& a : actions) {
    const auto number = action++;
    if (truncated) continue;
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
        host(agent, a.body, action, static_cast<std::uint32_t>(n));
      }
    } else {
      const bool wait = a.kind == Kind::wait;
      auto& steps = agents[agent].steps;
      acquires_ += wait;
      if (acquires_ * (agents.size() + columns_) > kMostClocks) {
        truncated = true;
        continue;
      }
      steps.push_back({.kind = wait ? Step::Kind::poll : Step::Kind::post,
                       .position = static_cast<std::uint32_t>(steps.size()) + 1,
                       .source = number,
                       .epoch = epoch,
                       .sync = &syncs[number],
                       .value = a.value.at(epoch)});
      waits += wait;
    }
  }
}

/// Completes a poll of or post to a signal by a host or a kernel. If it is not `used`, it has no word.
Sync Model::sync_to(GpuVa signal, bool used, Sync y) const {
  y.address = canonical(signal);
  if (const auto l = find_symbol(schedule, signal)) y.bytes = static_cast<std::uint8_t>(bytes_of(schedule, *l));
  if (used) y.word = 0;
  return y;
}

void Model::unroll() {
  agents.resize(programs.size() + schedule.hosts.size() + options.kernels.size());
  for (auto& p : programs)
    if (p.flags && profile.writes_ordered) p.column = static_cast<std::uint32_t>(agents.size() + columns_++);
  for (std::uint32_t q = 0; q < programs.size(); ++q) agents[q].index = q;
  for (std::uint32_t h = 0; h < schedule.hosts.size(); ++h) {
    const auto agent = queue_count() + h;
    agents[agent].kind = Agent::Kind::host;
    agents[agent].index = h;
    auto& syncs = host_syncs_[h];
    const auto collect = [&](const auto& self, const std::vector<Schedule::Action>& actions) -> void {
      for (const auto& a : actions) {
        const bool used = a.kind == Schedule::Action::Kind::set || a.kind == Schedule::Action::Kind::wait;
        syncs.push_back(sync_to(a.signal, used, {.func = a.func, .value = a.value}));
        self(self, a.body);
      }
    };
    collect(collect, schedule.hosts[h].actions);
    std::uint32_t action = 0;
    host(agent, schedule.hosts[h].actions, action, 0);
  }
  if (schedule.hosts.empty())
    for (std::uint32_t q = 0; q < programs.size(); ++q) submit(kNone, q, 0, 0);
}

void Model::kernels() {
  using Kind = KernelAgent::Step::Kind;
  for (std::uint32_t k = 0; k < options.kernels.size(); ++k) {
    const auto index = schedule.hosts.size() + k;
    auto& agent = agents[queue_count() + index];
    agent.kind = Agent::Kind::kernel;
    agent.index = k;
    auto& syncs = host_syncs_[index];
    for (const auto& s : options.kernels[k].steps) {
      const auto op = s.kind == Kind::add ? Op::add : Op::store;
      syncs.push_back(sync_to(s.signal, s.kind < Kind::read, {.op = op, .func = s.func, .value = s.value}));
    }
    for (std::uint32_t i = 0; i < syncs.size(); ++i) {
      const auto& s = options.kernels[k].steps[i];
      agent.steps.push_back({.kind = s.kind == Kind::wait  ? Step::Kind::poll
                                     : s.kind < Kind::read ? Step::Kind::post
                                                           : Step::Kind::touch,
                             .position = i + 1,
                             .source = i,
                             .sync = &syncs[i],
                             .value = s.value});
    }
  }
}

/// Completes the posts that land on their own, once all polls are known.
void Model::columns() {
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
