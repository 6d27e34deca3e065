// SPDX-License-Identifier: MIT
#pragma once
// Processes that use GPUs, as far as the kernel shows them without a debug session.
//
//   for (int pid : gpu_processes_below(child)) if (sdma_activity(pid) == before[pid]) ...    // its engines stand still
//
//   gpu_processes_below   the process and its descendants, of those that the driver lists in /sys/class/kfd/kfd/proc;
//                         of process 0: all of them
//   sdma_activity         what the driver counts of the process's sDMA work on all GPUs (sdma_GPUID). Only its change
//                         means anything. No document says whether the driver counts an engine that waits at a poll: if
//                         it does, such a process never seems to stand still
//
// Any thread may call these functions. They allocate. Errors: an empty list, or nullopt.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace sdma::inline v0::doctor {

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

std::vector<int> gpu_processes_below(int pid);
std::optional<std::uint64_t> sdma_activity(int pid);

}  // namespace sdma::inline v0::doctor
