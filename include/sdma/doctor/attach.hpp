// SPDX-License-Identifier: MIT
#pragma once
// A snapshot of the queues of a live process, of this program's user or, for root, of any.
//
//   const auto s = examine(4711, {.attach = true});
//   if (!s) return complain(s.error());                   // "process 4711: does not use a GPU"
//   puts(to_text(diagnose(*s)).c_str());
//
// Only the driver knows where the queues of another process are, and it gives this information only to a debugger. With
// `attach`, examine opens a debug session, which may change what it examines. Without `attach`, nothing in the process
// changes, but queues are found only in the driver's debugfs, which needs root and lacks the addresses of write
// pointers. docs/doctor.md lists the source of each value.
//
// During a session, a call of the runtime (hsa_init, hsa_shut_down) waits for the debugger. examine answers these
// calls, and gives one more answer in reserve, because no later answer could reach a call that comes just before the
// session ends. One call of the runtime may therefore not wait for a debugger that attaches later. If this program is
// killed, the kernel ends the session and the tracing.
//
// What cannot be read is left out, and a note names it. Doorbells are never read.
//
// The software node is examined in the same way if this program runs under `sdma emulate`, too. On the driver, all of
// this is untested: no machine with the driver was available.
//
// Allocates; takes `watch` plus at most 30 s. Any thread may call it, also for several processes at the same time.
// Errors: a Diagnostic whose `where` is the process: it does not exist, may not be examined, does not use a GPU, is
// debugged already, or has ended meanwhile; or the driver has no debug sessions.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// How `examine` looks at a process.
struct AttachOptions {
  bool attach = false;                                        ///< begin a debug session
  std::chrono::milliseconds watch = std::chrono::seconds(1);  ///< from the first look to the last
};

/// `pid`: the leader of the process.
Result<Snapshot, Diagnostic> examine(int pid, const AttachOptions& = {});

/// What is known about a process before it is examined.
struct ProcessKind {
  bool exists{};         ///< is there such a process?
  bool readable{};       ///< this user may examine it
  bool uses_gpu{};       ///< it has opened /dev/kfd
  bool emulated{};       ///< it runs on the software node
  bool this_emulated{};  ///< so does this program
};
/// What /proc says about the process. If there is none, `exists` is false.
ProcessKind kind_of_process(int pid);
/// The process and its descendants, of those that the driver lists in /sys/class/kfd/kfd/proc; of process 0: all of
/// them.
std::vector<int> gpu_processes_below(int pid);
/// What the driver counts of the process's sDMA work on all GPUs (sdma_GPUID). Only its change means anything. No
/// document says whether the driver counts an engine that waits at a poll: if it does, such a process never seems to
/// stand still.
std::optional<std::uint64_t> sdma_activity(int pid);

}}}  // namespace sdma::v0_3::doctor
