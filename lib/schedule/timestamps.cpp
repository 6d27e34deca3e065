// SPDX-License-Identifier: MIT
#include "sdma/schedule/timestamps.hpp"

#include "sdma/core/atomic_ref.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/wait.hpp"

#include <atomic>

namespace sdma { inline namespace v0_3 {
namespace {

std::vector<TimedSchedule::Bar> bars_of(std::span<const std::uint32_t> dwords) {
  std::vector<TimedSchedule::Bar> out;
  std::size_t until = 0;  // the end of the packets that an earlier packet may skip: they belong to its bar
  for (Reader r{dwords}; r;) {
    const auto begin = r.position_dwords();
    const auto v = r.next();
    if (begin < until && !out.empty()) out.back().dwords = r.position_dwords() - out.back().begin;
    else out.push_back({.begin = begin, .dwords = v.dwords.size()});
    if (v.whole()) until = std::max(until, r.position_dwords() + skipped(*v.info, v.dwords));
  }
  return out;
}

std::uint64_t nanoseconds(Deadline::Clock::time_point t) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(t.time_since_epoch()).count());
}

/// The word of a timestamp; 0 if none was stored.
std::uint64_t stamp(std::span<std::byte> words, std::size_t i) {
  auto* word = reinterpret_cast<std::uint64_t*>(words.data() + i * TimedSchedule::kStampStride);
  return atomic_ref(*word).load(std::memory_order_relaxed);
}

}  // namespace

TimedSchedule with_timestamps(const Schedule& s) {
  TimedSchedule out{.schedule = s};
  auto& t = out.schedule;
  for (std::size_t i = 0; i < s.queues.size(); ++i) {
    const auto& from = s.queues[i];
    auto& to = t.queues[i];
    TimedSchedule::Queue q{.stamps = t.buffers.size(), .done = t.signals.size(), .bars = bars_of(from.dwords)};
    const auto number = std::to_string(i);
    const auto words = t.add_buffer({.place = Place::host(),
                                     .name = "timestamps_" + number,
                                     .bytes = (q.bars.size() + 1) * TimedSchedule::kStampStride,
                                     .alignment = TimedSchedule::kStampStride,
                                     .init = Init::zero});
    const auto done = t.add_signal({.place = Place::host(), .name = "timestamps_done_" + number, .bits = 32});

    to.dwords.clear();
    to.epochs.clear();
    auto epoch = from.epochs.begin();
    for (std::size_t n = 0; n < q.bars.size(); ++n) {
      auto& bar = q.bars[n];
      to.put(Timestamp{.addr = words + n * TimedSchedule::kStampStride});
      bar.timed_begin = to.dwords.size();
      const auto at = from.dwords.begin() + static_cast<std::ptrdiff_t>(bar.begin);
      to.dwords.insert(to.dwords.end(), at, at + static_cast<std::ptrdiff_t>(bar.dwords));
      for (; epoch != from.epochs.end() && epoch->packet < bar.begin + bar.dwords; ++epoch) {
        to.epochs.push_back(*epoch);
        to.epochs.back().packet += bar.timed_begin - bar.begin;
      }
    }
    to.put(Timestamp{.addr = words + q.bars.size() * TimedSchedule::kStampStride});
    to.put<&Fence::value>({.addr = done}, kEpoch);
    out.queues.push_back(std::move(q));
  }
  return out;
}

Errc record_timestamps(const TimedSchedule& t, const Bound& bound, trace::Recorder& recorder, Deadline deadline) {
  auto result = Errc::ok;
  recorder.name(bound.names());
  for (std::size_t i = 0; i < t.queues.size(); ++i) {
    const auto& q = t.queues[i];
    const auto& queue = bound.queue(i);
    const auto epoch = bound.epoch(i);
    if (epoch == 0) continue;
    if (!wait(bound.signal(q.done), Compare::eq, static_cast<std::uint32_t>(epoch), deadline, bound.ring(i)))
      result = Errc::timed_out;
    const auto clock = bound.device().clock(queue.gpu());
    if (!clock) {
      result = clock.error();
      continue;
    }
    const auto lane = recorder.lane(trace::queue_lane(queue.gpu(), queue.engine(), t.schedule.queues[i].name));
    const auto words = bound.bytes({link_buffer(q.stamps), (q.bars.size() + 1) * TimedSchedule::kStampStride});
    const auto moved = bound.packets(i);
    for (std::size_t n = 0; n < q.bars.size(); ++n) {
      const auto begin = stamp(words, n), end = stamp(words, n + 1);
      // A timestamp left by an earlier round is less than the one before it.
      if (begin == 0 || (n > 0 && begin < stamp(words, n - 1))) break;
      const auto& bar = q.bars[n];
      const auto position = std::uint64_t{bar.begin} * 4;
      const auto packet = moved.subspan(bar.timed_begin, bar.dwords);
      if (n == 0) recorder.epoch(lane, nanoseconds(clock->at(begin)), position, epoch);
      recorder.packet_begin(lane, nanoseconds(clock->at(begin)), position, Reader{packet}.next().dwords);
      if (end >= begin) recorder.packet_end(lane, nanoseconds(clock->at(end)), position);
    }
  }
  return result;
}

}}  // namespace sdma::v0_3
