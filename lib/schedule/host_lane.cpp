// SPDX-License-Identifier: MIT
#include "host_lane.hpp"

#include "recorded.hpp"

#include <new>

namespace sdma::inline v0::detail {

HostLane::HostLane(trace::Recorder* recorder, const Bound& bound, std::string_view group, std::string_view thread)
    : recorder_(recorder), bound_(bound) {
  if (recorder_) lane_ = recorder_->lane(group, thread);
}

SubmitObserver* HostLane::watch_submit(std::size_t queue) {
  if (!recorder_) return nullptr;
  const auto [at, fresh] = queues_.try_emplace(queue);
  if (fresh) {
    const auto& q = bound_.schedule().queues[queue];
    const auto& real = bound_.queue(queue);
    at->second.lane = recorder_->lane(trace::queue_lane(real.gpu(), real.engine(), q.name));
    at->second.rings = recorder_->text(rings_text(queue_name(q)));
    at->second.room = recorder_->text(room_text(queue_name(q)));
  }
  queue_ = queue;
  since_ = trace::now();
  return &watch_;
}

void HostLane::action(std::uint64_t from, std::uint64_t to, trace::TextId what, std::uint64_t value) noexcept {
  recorder_->action_begin(lane_, from, what, value);
  recorder_->action_end(lane_, to);
}

void HostLane::submitted(const SubmittedPiece& p) noexcept {
  auto& q = queues_.find(queue_)->second;
  try {
    const auto [builds, fresh] = q.builds.try_emplace(p.packets);
    if (fresh) builds->second = recorder_->text(builds_text(queue_name(bound_.schedule().queues[queue_]), p.packets));
    if (p.waited) action(since_, p.began_ns, q.room);
    action(p.began_ns, p.built_ns, builds->second, p.epoch);
    action(p.built_ns, p.rung_ns, q.rings);
  } catch (const std::bad_alloc&) {  // the recording lacks this piece; the run continues
  }
  // The engine begins these packets later, so their epoch is known by then.
  recorder_->epoch(q.lane, p.began_ns, p.position, p.epoch);
  since_ = p.rung_ns;
}

trace::TextId HostLane::text_of(const Schedule::Action& a) {
  const auto [at, fresh] = texts_.try_emplace(&a);
  if (fresh) at->second = recorder_->text(action_text(bound_.schedule(), a));
  return at->second;
}

void HostLane::begin_wait(const Schedule::Action& a, std::uint64_t reference) {
  if (recorder_) recorder_->action_begin(lane_, trace::now(), text_of(a), reference, bound_.address(a.signal));
}
void HostLane::end_wait() {
  if (recorder_) recorder_->action_end(lane_, trace::now());
}

void HostLane::stored(const Schedule::Action& a, std::uint64_t value, std::uint64_t now, std::uint64_t from) {
  const auto to = trace::now();
  action(from, to, text_of(a), value);
  recorder_->signal(lane_, to, bound_.address(a.signal), now);
}

}  // namespace sdma::inline v0::detail
