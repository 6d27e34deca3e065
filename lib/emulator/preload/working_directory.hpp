// SPDX-License-Identifier: MIT
#pragma once
// A working directory in the tree. The kernel keeps it, so that it is inherited by fork and exec and is separate for a
// child of vfork: it is an empty directory that was removed at once, and whose name contains the path in the tree.
//
//   enter("/sys/class/kfd/kfd")         -> /proc/self/cwd is "/dev/shm/sdma-cwd-1-0:\sys\class\kfd\kfd (deleted)"
//   working_directory()                 -> {"/sys/class/kfd/kfd", true}
//
// Nothing is left over, unless the process is killed between the two
// calls. Any thread may call these functions. Errors: -1 with errno.
#include <string>

namespace sdma::emulator {

struct WorkingDirectory {
  std::string path{};  ///< "" if it contains no file of ours and no directory above one
  bool in_tree{};
};
/// `climbs`: the path that is to be resolved begins with "..".
WorkingDirectory working_directory(bool climbs = false);
/// Makes a directory of the tree the working directory.
int enter(const std::string& path);
/// The working directory has changed to one of the machine's.
void note_working_directory() noexcept;

}  // namespace sdma::emulator
