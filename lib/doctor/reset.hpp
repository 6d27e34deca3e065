// SPDX-License-Identifier: MIT
#pragma once
// What the queues of an engine that was reset have lost, for a diagnosis (sdma/queue/reset.hpp).
//
//   diagnosis.after_reset = after_resets(snapshot);      // empty: no reset of an engine is known
//
// A log that names a queue means the queues that may be on its engine; a log that does not means all; one of several
// machines or starts means none. Internal; any thread. No errors.
#include "sdma/doctor/diagnose.hpp"

namespace sdma { inline namespace v0_3 { namespace doctor {

std::vector<AfterReset> after_resets(const Snapshot&);

}}}  // namespace sdma::v0_3::doctor
