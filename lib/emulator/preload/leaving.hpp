// SPDX-License-Identifier: MIT
#pragma once
// Programs that the node's descendants start and that do not find the node: stderr names each of them. With
// --require-node they are not started.
//
//   if (refused(AT_FDCWD, file, false, env)) return -1;     // errno is EACCES; the line is on stderr
//   return SDMA_REAL(execve)(file, argv, env);
//
//   barrier       a file into which the loader preloads nothing (core/preloadable.hpp). A
//                 program that is linked statically counts only if it contains the name of the device
//   environment   the one that the program gets does not name our library in LD_PRELOAD
//   service       a program that asks a running process, which is outside the node, to start others
//
// A file that does not exist or cannot be executed is nothing to report: exec fails. With --require-node, `sdma
// emulate` learns of each through the datagram socket sdma-left-ID, if it is in the same network namespace.
//
// The environment is read when the library is loaded, because a program may clear its own before it starts another.
// These functions run in children that share the memory of their parent (vfork), so nothing here allocates.
// Any thread may call them.
#include <string_view>

namespace sdma::emulator {

inline constexpr std::string_view kDevice = "/dev/kfd";

/// Whether --require-node forbids to start a program; names it if it will not find the node. Keeps errno, unless it
/// returns true: then EACCES. `searched`: a name without a slash is searched for in PATH. `env` may be null.
bool refused(int dirfd, const char* file, bool searched, char* const* env) noexcept;

/// Says "'PROGRAM' SENTENCE". Returns 0, or EACCES if --require-node forbids to start the program.
int leave(const char* program, const char* sentence) noexcept;

}  // namespace sdma::emulator
