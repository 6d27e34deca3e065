// SPDX-License-Identifier: MIT
#pragma once
// A snapshot of what a wait that gave up has left: one queue, the words around it, the thread that waited.
//
//   const auto limit = 200ms;
//   if (auto r = wait(done, Compare::ge, 5, Deadline::in(limit), ring); !r)
//     log(to_text(doctor::diagnose(doctor::snapshot_of(r.error(), peek, limit))));
//
//   Hung: a poll of a word that nothing writes. the queue is at position 0x1c0, and has not moved for at least 200 ms
//
// Everything that prints a StallReport and links the library prints this. `describe` (sync/describe.hpp) prints what
// the report holds, without a verdict; it does not know the doctor, because `sync` comes before it.
//
// A report is less than a ring: at most StallReport::kHead dwords from rptr on, and one packet before it. If more is
// pending, a wait that nothing satisfies is a guess, and so it is without the other queues: this queue may wait for one
// of them. For a schedule that is bound to a device, use bound.hpp, which reads all its queues.
//
// Allocates. Any thread may call it; `peek` is called later, by `diagnose`.
// Errors: none; a report without a ring is a snapshot without a queue.
#include "sdma/doctor/snapshot.hpp"
#include "sdma/sync/describe.hpp"

#include <chrono>

namespace sdma::inline v0::doctor {

/// `waited`: for how long, if the caller knows it; the queue was watched for that time.
Snapshot snapshot_of(const StallReport&, const Peek& = {}, std::chrono::nanoseconds waited = {});

}  // namespace sdma::inline v0::doctor
