// SPDX-License-Identifier: MIT
#include "real.hpp"

#include <sys/stat.h>
#include <cstring>

extern "C" int __xstat(int, const char*, struct stat*);
extern "C" int __lxstat(int, const char*, struct stat*);
extern "C" int __fxstat(int, int, struct stat*);
extern "C" int __fxstatat(int, int, const char*, struct stat*, int);

namespace sdma::emulator {
namespace {

/// The first argument of __xstat and the like, for the one struct stat of 64-bit machines.
constexpr int kVersion = 1;

int old_stat(const char* path, struct stat* s) noexcept { return SDMA_REAL(__xstat)(kVersion, path, s); }
int old_lstat(const char* path, struct stat* s) noexcept { return SDMA_REAL(__lxstat)(kVersion, path, s); }
int old_fstat(int fd, struct stat* s) noexcept { return SDMA_REAL(__fxstat)(kVersion, fd, s); }
int old_fstatat(int dirfd, const char* path, struct stat* s, int flags) noexcept {
  return SDMA_REAL(__fxstatat)(kVersion, dirfd, path, s, flags);
}

}  // namespace

void* find_real(const char* name) noexcept {
  if (void* const found = ::dlsym(RTLD_NEXT, name)) return found;
  const auto is = [name](const char* plain, const char* large) {
    return std::strcmp(name, plain) == 0 || std::strcmp(name, large) == 0;
  };
  if (is("stat", "stat64")) return reinterpret_cast<void*>(old_stat);
  if (is("lstat", "lstat64")) return reinterpret_cast<void*>(old_lstat);
  if (is("fstat", "fstat64")) return reinterpret_cast<void*>(old_fstat);
  if (is("fstatat", "fstatat64")) return reinterpret_cast<void*>(old_fstatat);
  return nullptr;
}

}  // namespace sdma::emulator
