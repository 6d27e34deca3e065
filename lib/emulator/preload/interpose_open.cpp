// SPDX-License-Identifier: MIT
// Interposes open, fopen and ioctl. Paths of the tree are answered here; all others are passed to the C library.
//
// A text is a sealed memfd. An open directory is a memfd that holds its path (for openat and fdopendir). These are real
// descriptors: they need no bookkeeping, and a program can dup, pass and close them like any other.
#include "../no_memory.hpp"
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "paths.hpp"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using namespace sdma::emulator;

namespace {

mode_t mode_of(int flags, va_list& list) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : mode_t{0};
}

/// Opens an entry of the tree; otherwise, calls the C library with the path that the kernel can find.
template <class Real> int open_at(int dirfd, const char* path, int flags, Real real) {
  return guarded(-1, [&] {
    const auto found = find_entry(dirfd, path, (flags & O_NOFOLLOW) == 0);
    return found.entry ? open_entry(found.path, *found.entry, flags) : real(found.dirfd(dirfd), found.name(path));
  });
}

/// `opened`: the C library's function, for a path.
template <class Opened> FILE* open_stream(Opened opened, const char* path, const char* mode) {
  if (!mode) return opened(path);
  return guarded<FILE*>(nullptr, [&]() -> FILE* {
    const auto found = find_entry(AT_FDCWD, path);
    if (!found.entry) return opened(found.name(path));
    const int access = std::strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int fd = open_entry(found.path, *found.entry, access | (std::strchr(mode, 'e') ? O_CLOEXEC : 0));
    if (fd < 0) return nullptr;
    auto* f = ::fdopen(fd, mode);
    if (!f) ::close(fd);
    return f;
  });
}

/// freopen: opens the entry by its descriptor, so that the stream keeps its identity.
template <class Opened> FILE* reopen_stream(Opened opened, const char* path, FILE* f) {
  return guarded<FILE*>(nullptr, [&]() -> FILE* {
    const auto found = find_entry(AT_FDCWD, path);
    if (!found.entry) return opened(found.name(path));
    const int fd = open_entry(found.path, *found.entry, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::fclose(f), nullptr;
    auto* r = opened(FdLink(fd).path);
    ::close(fd);
    return r;
  });
}

}  // namespace

/// `parameters`: path, flags and, for some, dirfd; then the arguments before `flags`.
#define SDMA_OPEN(name, from, parameters, ...)                        \
  SDMA_FRONT int name parameters {                                    \
    va_list list;                                                     \
    va_start(list, flags);                                            \
    const mode_t mode = mode_of(flags, list);                         \
    va_end(list);                                                     \
    return open_at(from, path, flags, [&](int at, const char* file) { \
      (void)at;                                                       \
      return SDMA_REAL(name)(__VA_ARGS__, flags, mode);               \
    });                                                               \
  }
SDMA_OPEN(open, AT_FDCWD, (const char* path, int flags, ...), file)
SDMA_SAME(open64, open)
SDMA_OPEN(openat, dirfd, (int dirfd, const char* path, int flags, ...), at, file)
SDMA_SAME(openat64, openat)

// The functions that programs compiled with _FORTIFY_SOURCE call.
#define SDMA_OPEN_2(name)                                                                                       \
  extern "C" int name(const char*, int);                                                                        \
  SDMA_FRONT int name(const char* path, int flags) {                                                            \
    return open_at(AT_FDCWD, path, flags, [&](int, const char* file) { return SDMA_REAL(name)(file, flags); }); \
  }
SDMA_OPEN_2(__open_2)
SDMA_OPEN_2(__open64_2)
#define SDMA_OPENAT_2(name)                                                                                         \
  extern "C" int name(int, const char*, int);                                                                       \
  SDMA_FRONT int name(int dirfd, const char* path, int flags) {                                                     \
    return open_at(dirfd, path, flags, [&](int at, const char* file) { return SDMA_REAL(name)(at, file, flags); }); \
  }
SDMA_OPENAT_2(__openat_2)
SDMA_OPENAT_2(__openat64_2)

#define SDMA_FOPEN(suffix)                                                                                      \
  SDMA_FRONT FILE* fopen##suffix(const char* path, const char* mode) {                                          \
    return open_stream([&](const char* file) { return SDMA_REAL(fopen##suffix)(file, mode); }, path, mode);     \
  }                                                                                                             \
  SDMA_FRONT FILE* freopen##suffix(const char* path, const char* mode, FILE* f) {                               \
    return reopen_stream([&](const char* file) { return SDMA_REAL(freopen##suffix)(file, mode, f); }, path, f); \
  }
SDMA_FOPEN()
SDMA_FOPEN(64)

SDMA_FRONT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  const auto type = _IOC_TYPE(request);
  if (type == 'K' || type == 'd' || type == DMA_BUF_BASE) {
    const int before = errno;
    if (const auto device = device_of(fd)) {
      // As in the kernel, the device node selects the interface, not the number of the ioctl.
      const int result = is_dmabuf(*device)        ? dmabuf_ioctl(request, argument)
                         : is_drm(*device)         ? drm_ioctl(Node::made(), *device, request, argument)
                         : device->node == nullptr ? EBADF
                                                   : kfd_ioctl(*device->node, request, argument);
      errno = result > 0 ? result : before;
      return result > 0 ? -1 : -result;
    }
    errno = before;
  }
  return SDMA_REAL(ioctl)(fd, request, argument);
}
