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
#include <cerrno>
#include <cstddef>

// The static is constant-initialised per call site and filled once; two threads that race store the same value.
#define SDMA_REAL(name)                                                            \
  ([]() noexcept {                                                                 \
    static decltype(&::name) real = nullptr;                                       \
    auto call = __atomic_load_n(&real, __ATOMIC_RELAXED);                          \
    if (!call) {                                                                   \
      call = reinterpret_cast<decltype(call)>(::sdma::emulator::find_real(#name)); \
      __atomic_store_n(&real, call, __ATOMIC_RELAXED);                             \
    }                                                                              \
    return call;                                                                   \
  }())

namespace sdma::emulator {

/// The C library's function of this name, or null. glibc before 2.33 has no stat, lstat, fstat and fstatat: for these
/// names, the result is a function that calls __xstat and the like.
void* find_real(const char* name) noexcept;

#ifdef __x86_64__
/// A system call, without the C library's function, which is interposed and sets errno.
inline long machine_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result < 0 && result > -4096 ? (errno = static_cast<int>(-result), -1) : result;
}
#else
inline long machine_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  return ::syscall(number, a, b, c, d, e, f);
}
#endif

/// mmap and munmap of the kernel, without a look-up, because an allocator may call them while the loader is running.
inline void* machine_mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  return reinterpret_cast<void*>(
      machine_call(SYS_mmap, reinterpret_cast<long>(at), static_cast<long>(bytes), rights, flags, fd, offset));
}
inline int machine_munmap(void* at, std::size_t bytes) noexcept {
  return static_cast<int>(machine_call(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(bytes), 0, 0, 0, 0));
}

}  // namespace sdma::emulator
