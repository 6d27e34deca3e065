// SPDX-License-Identifier: MIT
#pragma once
// A debug session with the driver, short enough that the process does
// not notice: sdma/doctor/attach.hpp has the sequence. Internal.
//
//   const auto s = list_queues(4711);
//   if (s.error != 0) ... s.step says which call failed
#include "../kfd/abi.hpp"

#include <cstdint>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

struct Listing {
  enum class Step : std::uint8_t { open, version, trace, enable, snapshot } step{};
  int error{};              ///< errno of the step; 0: all have succeeded
  bool remapped{};          ///< a runtime is enabled, so all queues were mapped anew
  bool answered_runtime{};  ///< a call of the runtime has waited for the debugger
  int tracer = 0;           ///< who traces the process already, if that is why it cannot be traced
  std::vector<kfd::QueueEntry> queues{};
};
/// Waits up to a second for another tracer to end, because sessions
/// are short. Returns after the process is not traced any more.
Listing list_queues(int pid);

}}}  // namespace sdma::v0_3::doctor
