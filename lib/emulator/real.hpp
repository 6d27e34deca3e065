// SPDX-License-Identifier: MIT
#pragma once
// The C library's own functions, which this library interposes. Each is looked up once, at its first call, because
// constructors of other libraries open files before ours has run.
//
//   return SDMA_REAL(open)(path, flags, mode);
//
// Nothing in this library calls the plain names, because they resolve to our own functions. Any thread may call these
// functions.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <cstddef>

// The static is constant-initialised per call site and filled once; two threads that race store the same value.
#define SDMA_REAL(name)                                                   \
  ([]() noexcept {                                                        \
    static decltype(&::name) real = nullptr;                              \
    auto call = __atomic_load_n(&real, __ATOMIC_RELAXED);                 \
    if (!call) {                                                          \
      call = reinterpret_cast<decltype(call)>(::dlsym(RTLD_NEXT, #name)); \
      __atomic_store_n(&real, call, __ATOMIC_RELAXED);                    \
    }                                                                     \
    return call;                                                          \
  }())

namespace sdma::emulator {

/// mmap without the look-up, because an allocator may call it while the loader is running.
inline void* machine_mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, rights, flags, fd, offset));
}

}  // namespace sdma::emulator
