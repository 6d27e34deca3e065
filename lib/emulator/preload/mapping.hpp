// SPDX-License-Identifier: MIT
#pragma once
// mmap and munmap as the program gets them, under names of our own.
//
//   program --mmap--> a library's hook --syscall(SYS_mmap)--> syscall() of ours --> map_for_program()
//
// A library that watches memory, as UCX does for MPI, puts a hook of its own in place of mmap: in the tables of all
// libraries, ours among them, or in the first instructions of the function itself. Its hook then calls syscall().
// From there, `mmap` would lead back to the hook, without an end; these functions do not.
//
// Any thread, without allocating. Errors: as mmap and munmap, with errno.
#include <sys/types.h>
#include <cstddef>

namespace sdma::emulator {

void* map_for_program(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept;
int unmap_for_program(void* at, std::size_t bytes) noexcept;

}  // namespace sdma::emulator
