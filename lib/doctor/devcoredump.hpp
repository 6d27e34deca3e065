// SPDX-License-Identifier: MIT
#pragma once
// The queues of programs in the kernel's devcoredump: of each, an engine's registers, which have its positions and the
// size of its ring. Its packets are in the memory of its process. Internal.
//
//   add_engine_queues(snapshot, text, "data");      // "data sdma1 rlc0", rptr 0x1c0, wptr 0x240
//
// A queue that its engine does not serve is left out. No shared state; any thread may call it. No errors: a note says
// what a queue lacks.
#include "sdma/doctor/snapshot.hpp"

#include <string_view>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// `name`: of the file. Adds nothing if the text has no such registers.
void add_engine_queues(Snapshot&, std::string_view text, std::string_view name);

}}}  // namespace sdma::v0_3::doctor
