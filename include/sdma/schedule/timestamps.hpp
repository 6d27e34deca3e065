#pragma once
// The timeline of a schedule on hardware, whose engines record nothing: TIMESTAMP packets between its packets.
//
//   const TimedSchedule timed = with_timestamps(schedule);
//   auto bound = bind(timed.schedule, device);
//   const auto r = run(*bound);
//   trace::Recorder recorder;
//   if (record_timestamps(timed, *bound, recorder, Deadline::in(1s)) != Errc::ok) ...    // the recorder has what there is
//   trace::save_perfetto(recorder.snapshot(), "run.json");
//
//   before   | copy          | atomic          |
//   timed    T copy          T atomic          T fence         T: TIMESTAMP, each to a word of its own in host memory
//            '--- one bar ---'--- one bar -----'
//
// A bar ends where the next one begins: what an engine overlaps looks as if it followed. A TIMESTAMP is a store more for each
// packet, so the run is slower by that. The fence says when the words may be read; each round overwrites them, and the last
// one is recorded. A conditional packet and what it skips are one bar, under the first packet's name.
//
// Events are packet_begin and packet_end in lanes as the software device names them (gpu0, "engine 14 queue 0"), at the
// positions and with the dwords of the packets as they are without TIMESTAMPs, in nanoseconds of the host's steady clock
// (Device::clock). A packet that has begun and not ended has no packet_end. Neither call is for hot paths; both allocate.
#include "sdma/schedule/bind.hpp"
#include "sdma/trace/trace.hpp"

#include <vector>

namespace sdma {
inline namespace v0 {

struct TimedSchedule {
  /// Dwords [begin, begin + dwords) of the queue's, and where they have moved to.
  struct Bar {
    std::size_t begin{}, dwords{}, moved{};
  };
  struct Queue {
    std::size_t stamps{};  ///< its buffer: one more word than bars, kApart bytes each
    std::size_t done{};    ///< its signal
    std::vector<Bar> bars{};
  };
  static constexpr std::size_t kApart = 32;  ///< bytes: as TIMESTAMP wants its words

  Schedule schedule{};  ///< buffers, signals, queues, actions and expectations of the first keep their numbers
  std::vector<Queue> queues{};
};

/// Requires a schedule without problems(). What is no packet, or none that can be executed, stays where it is.
TimedSchedule with_timestamps(const Schedule&);

/// Adds what the last round of each queue did. timed_out: a queue's words are not all there by then, which is a queue that
/// stands still; bad_argument: a GPU's clock cannot be read. What is there is recorded all the same.
Errc record_timestamps(const TimedSchedule&, const Bound&, trace::Recorder&, Deadline);

}  // namespace v0
}  // namespace sdma
