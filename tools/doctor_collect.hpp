// SPDX-License-Identifier: MIT
#pragma once
// sdma doctor --collect: what a machine shows about its GPUs now, in one archive that is examined elsewhere.
//
//   return collect({.path = "report.tar.gz", .anonymous = true});
//
//   collected.txt       what was taken, and what could not be read and why
//   log/kernel.txt      the kernel's log
//   log/pstore/..       what the kernel has saved of an earlier start
//   devcoredump/..      dumps of the driver, which it deletes five minutes after a reset
//   debugfs/..          descriptors of queues, rings of SDMA, fences, firmware
//   topology.txt        KFD's GPUs, memories and links; what KFD counts for each process
//   versions.txt        of the kernel, the driver, its parameters, firmware and ROCm; counts of errors
//   process/PID/..      maps and threads of each process that uses a GPU
//
// Nothing is changed: only files whose reading has no effect are opened (not amdgpu_gpu_recover, which resets a GPU). A
// child reads them, because a file of a driver that hangs may never answer: then the file is named, the child is
// ended, and the next one goes on. Everything ends within 30 s. A user gets what a user may read.
//
// `anonymous` leaves out names of hosts, users and processes. Lines of the kernel's log that name no driver of GPUs,
// their links or the IOMMU are left out, as are paths of programs; numbers of processes stay.
//
// Errors are reported: the archive cannot be written. One thread.
#include <string>

namespace sdma::tool {

struct CollectOptions {
  std::string path{};
  bool anonymous = false;
};
/// Returns an exit code.
int collect(const CollectOptions&);

/// Is this the collected.txt of such an archive? `sdma doctor` then reads its log, dumps and rings.
inline constexpr const char* kCollectedName = "collected.txt";
inline constexpr const char* kCollectedFirst = "sdma doctor --collect";
/// Does a diagnosis need this member of it? The others are for people.
inline bool is_evidence(const std::string& member) {
  return member.starts_with("log/") || member.starts_with("devcoredump/") || member.starts_with("debugfs/");
}

}  // namespace sdma::tool
