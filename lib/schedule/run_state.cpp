// SPDX-License-Identifier: MIT
#include "run_state.hpp"

#include "sdma/sync/describe.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail {

RunState::RunState(const Bound& b, const RunOptions& o)
    : bound(b), schedule(b.schedule()), options(o), deadline(Deadline::in(o.time_limit)), team(team_of(b)) {}

void RunState::add(std::string where, std::string message, std::string hint, std::string excerpt) {
  const std::lock_guard lock(mutex_);
  report_.findings.push_back({.where = std::move(where),
                              .message = std::move(message),
                              .hint = std::move(hint),
                              .excerpt = std::move(excerpt)});
}

void RunState::begins() {
  begin_ = moved_ = Deadline::Clock::now();
  mark_ = mark();
  deadline = Deadline::in(options.time_limit);
}

std::uint64_t RunState::mark() const {
  std::uint64_t sum = 0;
  const auto mix = [&](std::uint64_t v) { sum = (sum ^ v) * 0x100000001b3; };
  for (std::size_t q = 0; q < schedule.queues.size(); ++q)
    if (bound.owns(q)) mix(bound.ring(q).positions().read);
  // With several ranks, some signals are of others.
  for (std::size_t i = 0; i < schedule.signals.size() && !team; ++i) mix(bound.value(i));
  return sum;
}

bool RunState::over() {
  using Clock = Deadline::Clock;
  const auto now = Clock::now();
  const bool late = now >= deadline.at;
  if (!late && now.time_since_epoch().count() < next_look_) return ended_;
  const std::lock_guard lock(mutex_);
  next_look_ = (now + kLook).time_since_epoch().count();
  if (options.proceed && !options.proceed()) ended_ = true;
  if (const auto m = mark(); m != mark_) mark_ = m, moved_ = now;
  if (late || ended_) report_.still = now - moved_, report_.ended = ended_;
  return late || ended_;
}

std::chrono::milliseconds RunState::spent() const {
  const auto all = ended_ ? Deadline::Clock::now() - begin_ : options.time_limit;
  return std::chrono::duration_cast<std::chrono::milliseconds>(all);
}

void RunState::add_wrong(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  report_.wrong += bytes;
}

void RunState::flush_host_path() const {
  for (std::uint32_t g = 0; g < bound.device().topology().gpus.size(); ++g)
    static_cast<void>(bound.device().flush_host_writes(GpuId{g}));
}

bool RunState::fault() {
  bool any = false;
  if (team)
    if (const auto lost = team->lost()) {
      any = true;
      if (!lost_.exchange(true)) {
        add("run", to_string(*lost), "start all ranks again");
        const std::lock_guard lock(mutex_);
        report_.lost = lost->rank;
      }
    }
  if (auto* const network = network_of(bound))
    if (auto trouble = network->trouble()) {
      any = true;
      if (!trouble_.exchange(true)) add(trouble->where, trouble->message, "the network has stopped there");
    }
  for (auto f = bound.device().wait_fault(Deadline{}); f; f = bound.device().wait_fault(Deadline{})) {
    any = true;
    std::string where = "fault", gone;
    for (std::size_t q = 0; q < schedule.queues.size(); ++q)
      if (bound.owns(q) && bound.queue(q).id() == f->queue) {
        where = queue_name(schedule.queues[q]);
        if (f->kind == FaultKind::unmapped) gone = live.gone_at(f->va, schedule.queues[q].place);
      }
    const auto name = bound.name(f->va);
    add(where, describe(*f) + (name.empty() ? "" : " (" + name + ")") + (gone.empty() ? "" : "; " + gone),
        "on hardware: " + std::string(on_hardware(f->kind)));
  }
  return any;
}

std::string RunState::gone(const Schedule::Range& left, const Schedule::Range& right, const Schedule::Sum& sum,
                           Place user) const {
  if (!live.any()) return {};
  auto all = sum.parts;
  all.insert(all.end(), {left, right});
  for (const auto& r : all)
    if (auto why = r.bytes == 0 ? std::string() : live.gone(r.va, user); !why.empty()) return why;
  return {};
}

std::string RunState::queues() const {
  constexpr std::size_t kShown = 8;
  std::string out;
  std::size_t stalled = 0;
  for (std::size_t q = 0; q < schedule.queues.size(); ++q) {
    if (!bound.owns(q)) continue;
    const auto stall = inspect(bound.ring(q));
    if (stall.read == stall.committed) continue;
    if (++stalled > kShown) continue;
    const auto text = describe(
        stall, [&](GpuVa va, std::span<std::byte> to) { return bound.device().peek(va, to); },
        [&](GpuVa va) { return bound.name(va); });
    const auto where = bound.queue(q).engine() == kUnknownEngine
                           ? "the network"
                           : fmt::format("gpu {} engine {}", bound.queue(q).gpu().value, bound.queue(q).engine().value);
    out += fmt::format("{}  {}, {}: {}", out.empty() ? "" : "\n", queue_name(schedule.queues[q]), where, text);
  }
  if (stalled > kShown) out += fmt::format("\n  and {} more queues", stalled - kShown);
  return out.empty() ? "  every queue has read all its packets" : out;
}

}}}  // namespace sdma::v0_3::detail
