// SPDX-License-Identifier: MIT
#pragma once
// A snapshot of a schedule that is bound to a device: its queues, the device's memory, the schedule's names.
//
//   if (auto r = run(*bound); !r) puts(summary(diagnose(snapshot_of(*bound))).c_str());
//
// The queues are read twice, `watch` apart, so that a queue that moves is known to be slow. Call it after the host
// threads of the schedule have ended: the snapshot does not have their actions. On hardware, faults are those that the
// device has reported.
//
// Allocates, and sleeps for `watch`. Any thread may call it while
// engines run; producers of the rings should not run. Errors: none.
#include "sdma/doctor/snapshot.hpp"
#include "sdma/schedule/bind.hpp"

#include <chrono>

namespace sdma::inline v0::doctor {

Snapshot snapshot_of(const Bound&, std::chrono::nanoseconds watch = std::chrono::milliseconds(2));

}  // namespace sdma::inline v0::doctor
