// SPDX-License-Identifier: MIT
#pragma once
// Records the timeline of a schedule on hardware. Hardware engines do not record anything, so with_timestamps inserts
// TIMESTAMP packets between the schedule's packets.
//
//   const TimedSchedule timed = with_timestamps(schedule);
//   auto bound = bind(timed.schedule, device);
//   const auto r = run(*bound);
//   trace::Recorder recorder;
//   if (record_timestamps(timed, *bound, recorder, Deadline::in(1s)) != Errc::ok) ...    // the recording is incomplete
//   trace::save(recorder.snapshot(), "run.json");
//
//   before   | copy          | atomic          |
//   timed    T copy          T atomic          T fence         T: TIMESTAMP, each to a word of its own in host memory
//            '--- one bar ---'--- one bar -----'
//
// Each bar ends where the next one begins, so packets that an engine overlaps appear one after another. Each packet
// costs one more store, which makes the run slower. The words may be read after the fence. Each round overwrites them,
// so only the last round is recorded. A conditional packet and the packets that it may skip make one bar, under the
// first packet's name.
//
// Events are epoch, packet_begin and packet_end, in lanes that are named like those of the software device (gpu0,
// "engine 14 push"), and the names of the schedule's buffers and signals are recorded. Packets have the positions and
// dwords that they have without TIMESTAMPs, and times in nanoseconds of the host's steady clock (Device::clock). A
// packet that has begun but not ended has no packet_end. Both calls allocate, and neither is for hot paths.
#include "sdma/schedule/bind.hpp"
#include "sdma/trace/trace.hpp"

#include <vector>

namespace sdma { inline namespace v0_3 {

struct TimedSchedule {
  /// Dwords [begin, begin + dwords) of the original queue, and where they begin in the timed queue.
  struct Bar {
    std::size_t begin{}, dwords{}, timed_begin{};  ///< all count dwords of a queue
  };
  /// The stamps of one queue.
  struct Queue {
    std::size_t stamps{};     ///< index of its buffer: kStampStride bytes for each bar, and for one more
    std::size_t done{};       ///< index of its signal
    std::vector<Bar> bars{};  ///< in the order of the queue
  };
  static constexpr std::size_t kStampStride = 8;  ///< bytes: what TIMESTAMP stores, and the alignment that it requires

  Schedule schedule{};  ///< the original's buffers, signals, queues, actions and expectations keep their numbers
  std::vector<Queue> queues{};  ///< in the order of Schedule::queues
};

/// Requires a schedule without problems(). Dwords that do not form an executable packet are kept in their place.
TimedSchedule with_timestamps(const Schedule&);

/// Records what the last round of each queue did. timed_out: a queue had not stored all its timestamps by the deadline,
/// so it is stalled; an error of Device::clock: the queues of a GPU whose clock it cannot read are not recorded.
/// Timestamps that have been stored are recorded in any other case.
[[nodiscard]] Errc record_timestamps(const TimedSchedule&, const Bound&, trace::Recorder&, Deadline);

}}  // namespace sdma::v0_3
