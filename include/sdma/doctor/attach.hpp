// SPDX-License-Identifier: MIT
#pragma once
// A snapshot of the queues of a live process, of this program's user or, for root, of any.
//
//   const auto s = examine(4711, {.attach = true});
//   if (!s) return complain(s.error());                   // "process 4711: does not use a GPU"
//   puts(to_text(diagnose(*s)).c_str());
//
// Only the driver knows where the queues of another process are, and it answers only a debugger:
//
//   attach     one thread traces the leader of the process, enables a debug session that subscribes to no exception,
//              takes the snapshot of all queues, ends the session, and ends, which ends the tracing. The process is
//              never stopped. Where a runtime is enabled in the process (ROCr since 6.0), both ends of the session
//              unmap all its queues on all GPUs and map them again. That makes up for a doorbell that was lost, and may
//              reset an engine that does not answer: the patient may get well while it is examined. So this is done
//              only on request, and a note says so
//   not        nothing in the process changes. Queues are found only in the driver's
//              debugfs (`mqds`, for root), without the addresses of their write pointers.
//              Otherwise the snapshot has no queue, and its notes say what is missing
//
// With a session, a call of the runtime (hsa_init, hsa_shut_down) waits for the debugger. It is answered, once more
// than was asked for: no later answer could reach a call that comes just before the session ends. So the runtime may
// not wait for a debugger that comes later. If this program is killed, the kernel ends session and tracing.
//
//   rptr, wptr, rings, words    /proc/PID/mem, where mappings of the driver answer
//                               (process_vm_readv does not read them), at the first look and
//                               again after `watch`; `peek` reads the words when `diagnose` asks.
//                               Words that queues wait for are read some 64 times meanwhile
//   engine                      debugfs, else unknown: the driver's snapshot does not have it
//   exceptions                  the driver's snapshot. It has no doorbells and no times
//   ranges                      /proc/PID/maps. GPU memory that the process cannot access is in a reserved range there
//   compute queues              are counted in a note. If all are empty, no packet of them can change a word. If one
//                               may be executing a kernel, a wait that nothing else satisfies is a guess; one that
//                               waits at a barrier cannot satisfy it
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

namespace sdma::inline v0::doctor {

/// How `examine` looks at a process.
struct AttachOptions {
  bool attach = false;                                        ///< begin a debug session
  std::chrono::milliseconds watch = std::chrono::seconds(1);  ///< from the first look to the last
};

/// `pid`: the leader of the process.
Result<Snapshot, Diagnostic> examine(int pid, const AttachOptions& = {});

}  // namespace sdma::inline v0::doctor
