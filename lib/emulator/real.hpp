#pragma once
// The C library's own functions, behind the ones that we put in front of them. Looked up once, at the first call, because
// constructors of other libraries open files before ours has run.
//
//   return SDMA_REAL(open)(path, flags, mode);
//
// Nothing in this library calls the plain names: they would come back to us. Any thread.
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

/// mmap without the look-up: an allocator may map while the loader is at work.
inline void* machine_mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, rights, flags, fd, offset));
}

}  // namespace sdma::emulator
