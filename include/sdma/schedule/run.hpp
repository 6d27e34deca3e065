// SPDX-License-Identifier: MIT
#pragma once
// Runs the host threads and kernels of a bound schedule: from filling its buffers to checking its expectations.
//
//   RunReport r = run(*bound, {.time_limit = 5s, .seed = 7});
//   for (const auto& f : r.findings) puts(to_string(f).c_str());
//
//   1. fills      buffers as `init` says or with an input; signals with their initial values; epochs begin at 1
//   2. saves      the bytes that expectations call `old`
//   3. runs       a thread for each host block: submit, set, wait,
//                 repeat, ... A kernel has such a thread as its stand-in
//   4. checks     once all threads have ended: which bytes of which buffer differ
//
// A benchmark repeats a run with `contents` off: then buffers keep what they hold, steps 2 and 4 are left out, and
// `round` is the time. A round is that of simulate/simulate.hpp: from the first `set` after the last wait, or from the
// first submit if there is no such `set`, to the end of the waits of the first host thread that follow.
//
// The run's deadline is its time limit after the moment at which its buffers have been filled. A wait that is still
// pending then is a finding, and so is an action or a round of a repeat that has not begun. Where ranks meet, before
// and after step 3, each waits for the others for the limit and ten seconds more, because they start late. An `expect`
// of a thread or a kernel that finds a difference is a finding, too. A stall report describes every queue that has not
// read all its packets. A fault of a queue is a finding as soon as it is seen. Each of these stops all host threads and
// kernels, and then nothing else is compared. A Bound may run many times. After a run that timed out, the Bound's
// queues may still be stalled, so make a new Bound.
//
// Kernels run only on a device where a thread can stand in for them (Device::kernels_stand_in); on any other device, a
// schedule with kernels is not run, and a finding says so. The stand-in performs the kernel's actions in order;
// `compute` takes at least its time, by the host's clock, and ends early when the run does.
//
// The contents of a buffer depend only on the seed and the buffer's number. A schedule that expects a finding from the
// checker is not run; the report's only finding says so. `run` blocks the calling thread, and allocates. A Bound may
// have only one run at a time.
#include "sdma/schedule/bind.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/trace/trace.hpp"

#include <chrono>
#include <functional>
#include <optional>

namespace sdma { inline namespace v0_3 {

/// How a schedule is run.
struct RunOptions {
  /// The first bytes of a buffer before the run, in place of its `init`.
  struct Input {
    std::string name{};              ///< "gpu0.in"
    std::vector<std::byte> bytes{};  ///< its first bytes; `init` determines the rest
  };
  std::chrono::nanoseconds time_limit = std::chrono::seconds(10);  ///< of the whole run
  std::uint64_t seed = 0;                                          ///< of the random contents of buffers and stores
  /// In any order. If two are for one buffer, the later one is stored over the earlier one.
  std::vector<Input> inputs{};
  bool contents = true;    ///< false: only signals are set, no buffer is filled, and no expectation is checked
  const SourceMap* map{};  ///< the lines of the actions, from parse_schedule
  /// Records the names of the schedule, the epochs of its queues, and what each host thread does, in a lane of its own.
  /// Give the same recorder to the device, and its packets are in the same recording. Not owned.
  trace::Recorder* recorder{};
  /// Asked by each waiting thread, every 20 ms; false ends the run, which then reports what it waits for, as at the
  /// deadline.
  std::function<bool()> proceed{};
};

struct [[nodiscard]] RunReport {
  std::vector<Diagnostic> findings{};  ///< what failed: an input, the run itself, or expectations
  std::chrono::nanoseconds elapsed{};  ///< the duration of step 3
  /// The last round of it, as simulate.hpp defines rounds; 0 if no wait of the first host thread ended one. With
  /// kernels, step 3 is one round, from its first action.
  std::chrono::nanoseconds round{};
  std::uint64_t wrong{};  ///< bytes and signals that differ from the expectations
  /// The rank whose end or failure has ended the run of this one; a finding says so.
  std::optional<std::uint32_t> lost{};
  /// If the deadline or `proceed` has ended the run: for how long no queue of this process has read a packet, and no
  /// signal has changed. Exact to 20 ms.
  std::chrono::nanoseconds still{};
  bool ended{};  ///< `proceed` has ended it
  explicit operator bool() const noexcept { return findings.empty(); }
};

/// Runs all host threads and kernels of the schedule once.
RunReport run(const Bound&, const RunOptions& = {});

}}  // namespace sdma::v0_3
