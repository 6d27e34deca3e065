// SPDX-License-Identifier: MIT
#pragma once
// The processes on this machine that use a node, and their memory. The node keeps no list: the objects of a process
// are memfds with names (object_file.hpp), so /proc shows them as long as the process exists. Processes of other
// users are not seen.
//
//   arenas_of(4711)                  empty: the process uses no node, or may not be examined
//   bytes_in_use(0, kfd::kVram)      memory of GPU 0 in all processes; an object
//                                    that several processes share counts once
//
// Any thread may call these functions. They allocate.
#include "../shown.hpp"

#include <sys/types.h>
#include <cstdint>
#include <string>
#include <vector>

namespace sdma::emulator {

/// The inodes of all arenas of which a process has a descriptor: its own, and those that it got from others.
std::vector<ino_t> arenas_of(std::uint64_t pid);

/// All processes that use a node and may be examined.
std::vector<std::uint64_t> node_processes();
/// A descriptor of a process's own arena, not of one that it got from
/// another; -1: there is none, or it may not be examined. Close it.
int open_arena(std::uint64_t pid);

/// What a process shows; zeros if it has no arena, or may not be examined.
Shown shown_by(std::uint64_t pid);
/// The number of a process's address space, which is made up.
std::uint64_t pasid_of(std::uint64_t pid) noexcept;

/// The kernel's log of the node: page faults of these processes as the driver reports them, by time. Those of a process
/// that has ended are gone.
std::string kernel_log();
std::uint64_t bytes_in_use(std::uint32_t gpu, std::uint32_t flag);

}  // namespace sdma::emulator
