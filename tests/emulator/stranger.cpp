// SPDX-License-Identifier: MIT
// A library of strangers.cpp and of cases/strangers. Loaded with RTLD_DEEPBIND, `opens` finds the functions of the C
// library before those of the node. Preloaded beside the node, it calls the node back, as fakeroot and mimalloc do: its
// stat functions call others by their names, and its malloc asks /sys at its first call.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>

extern "C" int opens(const char* path) { return open(path, O_RDWR | O_CLOEXEC); }

#ifdef SDMA_PRELOADED
extern "C" {
int __fxstatat(int, int, const char*, struct stat*, int);
void* __libc_malloc(std::size_t);
int stat(const char* path, struct stat* s) noexcept { return __fxstatat(1, AT_FDCWD, path, s, 0); }
int lstat(const char* path, struct stat* s) noexcept { return __fxstatat(1, AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW); }
int fstatat(int d, const char* path, struct stat* s, int flags) noexcept { return __fxstatat(1, d, path, s, flags); }
void* malloc(std::size_t bytes) noexcept {
  static bool asked = false;
  if (!asked) {
    (void)!::access("/sys/devices/system/node/node0", R_OK);
    asked = true;
  }
  return __libc_malloc(bytes);
}
}
#endif
