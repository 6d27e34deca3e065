// SPDX-License-Identifier: MIT
#pragma once
// The lane of a host thread of a run, or of a kernel's stand-in: records what it does while it does it. Internal.
//
//   HostLane lane(recorder, bound, "host", "main");
//   bound.submit(q, deadline, lane.watch_submit(q));      // builds 3 packets for gpu0.push, epoch 1 | rings gpu0.push
//   lane.begin_wait(action, reference);                   // waits for host.done >= 8
//   lane.end_wait();
//
// Without a recorder, nothing is recorded. One thread at a time per
// object. Only the first record of an action, or of a queue, allocates.
#include "recorded.hpp"
#include "sdma/schedule/bind.hpp"
#include "sdma/trace/trace.hpp"

#include <map>
#include <new>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

class HostLane {
 public:
  HostLane(trace::Recorder* recorder, const Bound& bound, std::string_view group, std::string_view thread)
      : recorder_(recorder), bound_(bound) {
    if (recorder_) lane_ = recorder_->lane(group, thread);
  }

  /// The observer of the next call of submit for this queue; null without a recorder.
  SubmitObserver* watch_submit(std::size_t queue) {
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
  void begin_wait(const Schedule::Action& a, std::uint64_t reference) {
    if (recorder_) recorder_->action_begin(lane_, trace::now(), text_of(a), reference, bound_.address(a.signal));
  }
  /// The wait that began last has ended. One without an end is a wait that was given up.
  void end_wait() {
    if (recorder_) recorder_->action_end(lane_, trace::now());
  }
  /// Calls `store`, which returns the signal's new value, and records what it did with `value`.
  template <class Fn> void set(const Schedule::Action& a, std::uint64_t value, Fn&& store) {
    const auto from = recorder_ ? trace::now() : 0;
    const std::uint64_t now = store();
    if (recorder_) stored(a, value, now, from);
  }
  /// The thread has just read `value`.
  void sampled(const Schedule::Action& a, std::uint64_t value) {
    if (recorder_) action(trace::now(), trace::now(), text_of(a), value);
  }
  /// Calls `act`, and records how long it took. Returns its result.
  template <class Fn> bool during(const Schedule::Action& a, Fn&& act) {
    if (recorder_) recorder_->action_begin(lane_, trace::now(), text_of(a));
    const bool ok = act();
    if (recorder_) recorder_->action_end(lane_, trace::now());
    return ok;
  }

 private:
  class Watch : public SubmitObserver {
   public:
    explicit Watch(HostLane& lane) noexcept : lane_(lane) {}
    void submitted(const SubmittedPiece& piece) noexcept override { lane_.submitted(piece); }

   private:
    HostLane& lane_;
  };

  /// What records of a queue need.
  struct QueueTexts {
    trace::LaneId lane{};
    trace::TextId rings{}, room{};
    std::map<std::size_t, trace::TextId> builds{};  ///< by the number of packets
  };

  void stored(const Schedule::Action& a, std::uint64_t value, std::uint64_t now, std::uint64_t from) {
    const auto to = trace::now();
    action(from, to, text_of(a), value);
    recorder_->signal(lane_, to, bound_.address(a.signal), now);
  }
  void submitted(const SubmittedPiece& p) noexcept {
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
  void action(std::uint64_t from, std::uint64_t to, trace::TextId what, std::uint64_t value = 0) noexcept {
    recorder_->action_begin(lane_, from, what, value);
    recorder_->action_end(lane_, to);
  }
  trace::TextId text_of(const Schedule::Action& a) {
    const auto [at, fresh] = texts_.try_emplace(&a);
    if (fresh) at->second = recorder_->text(action_text(bound_.schedule(), a));
    return at->second;
  }

  trace::Recorder* recorder_;
  const Bound& bound_;
  trace::LaneId lane_{};
  std::map<const Schedule::Action*, trace::TextId> texts_{};
  std::map<std::size_t, QueueTexts> queues_{};
  Watch watch_{*this};
  std::size_t queue_ = 0;    ///< whose submit is watched
  std::uint64_t since_ = 0;  ///< when that submit, or its latest piece, began to need room
};

}}}  // namespace sdma::v0_3::detail
