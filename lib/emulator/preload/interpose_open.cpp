// Interposes open, fopen and ioctl. Paths of the tree are answered here; all others are passed to the C library.
//
// A text is a sealed memfd. An open directory is a memfd that holds its path (for openat and fdopendir). These are real
// descriptors: they need no bookkeeping, and a program can dup, pass and close them like any other.
#include "../no_memory.hpp"
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "open_entry.hpp"
#include "override.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr const char* kDirectoryName = "sdma-dir";
constexpr std::string_view kFileName = "sdma-file-";  ///< followed by its inode, for fstat

int filled_memfd(const char* name, std::string_view text, int flags) {
  const int fd = ::memfd_create(name, MFD_ALLOW_SEALING | ((flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0u));
  if (fd < 0) return fd;
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ::close(fd);
    errno = ENOMEM;
    return -1;
  }
  SDMA_REAL(lseek)(fd, 0, SEEK_SET);
  SDMA_REAL(fcntl)(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

int open_entry(std::string_view path, const Entry& e, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return fail(EEXIST);
  switch (e.kind) {
    case Kind::directory: return writes ? fail(EISDIR) : filled_memfd(kDirectoryName, path, flags);
    case Kind::text:
      if ((flags & O_DIRECTORY) != 0) return fail(ENOTDIR);
      return writes ? fail(EACCES) : filled_memfd(fmt::format("{}{}", kFileName, e.inode).c_str(), e.text, flags);
    case Kind::kfd:
    case Kind::drm:
    case Kind::link: break;  // links have been followed already
  }
  if ((flags & O_DIRECTORY) != 0) return fail(ENOTDIR);
  if (e.kind == Kind::kfd) override_old_runtime();
  auto* n = Node::get();
  if (!n) return fail(ENOMEM);
  return e.kind == Kind::drm ? n->open_drm(e.minor, flags) : n->open_kfd(flags);
}

std::uint64_t file_inode(int fd) {
  char room[64];
  const auto name = memfd_name(FdLink(fd).path, room);
  return name.starts_with(kFileName) ? parse_count(name.substr(kFileName.size())).value_or(0) : 0;
}

std::string directory_path(int fd) {
  char room[64], path[1024];
  if (memfd_name(FdLink(fd).path, room) != kDirectoryName) return {};
  const auto n = ::pread(fd, path, sizeof path, 0);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

Found find_entry(int dirfd, const char* path, bool follow) {
  if (!path) return {};
  if (path[0] == '/') {
    if (!Tree::concerns(path)) return {};
    return {tree().find(path, follow), path};
  }
  if (dirfd == AT_FDCWD) return {};
  auto from = directory_path(dirfd);
  if (from.empty()) return {};
  if (path[0] != 0) from.append("/").append(path);
  return {tree().find(from, follow), from};
}

}  // namespace sdma::emulator

using namespace sdma::emulator;

namespace {

mode_t mode_of(int flags, va_list& list) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : mode_t{0};
}

/// Opens an entry of the tree; otherwise, calls the C library.
template <class Real> int open_at(int dirfd, const char* path, int flags, Real real) {
  enum : int { kNotOurs = -2 };
  const int fd = guarded(-1, [&] {
    const auto found = find_entry(dirfd, path);
    return found.entry ? open_entry(found.path, *found.entry, flags) : int{kNotOurs};
  });
  return fd == kNotOurs ? real() : fd;
}

template <class Real, class Path> FILE* open_stream(Real real, Path path, const char* mode) {
  if (!mode) return real(path, mode);
  const int access = std::strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  bool ours = true;
  const int fd = open_at(AT_FDCWD, path, access | (std::strchr(mode, 'e') ? O_CLOEXEC : 0), [&] {
    ours = false;
    return -1;
  });
  if (!ours) return real(path, mode);
  if (fd < 0) return nullptr;
  auto* f = ::fdopen(fd, mode);
  if (!f) ::close(fd);
  return f;
}

}  // namespace

/// `parameters`: path, flags and, for some, dirfd; then the arguments before `flags`.
#define SDMA_OPEN(name, from, parameters, ...)                                                    \
  SDMA_FRONT int name parameters {                                                                \
    va_list list;                                                                                 \
    va_start(list, flags);                                                                        \
    const mode_t mode = mode_of(flags, list);                                                     \
    va_end(list);                                                                                 \
    return open_at(from, path, flags, [&] { return SDMA_REAL(name)(__VA_ARGS__, flags, mode); }); \
  }
SDMA_OPEN(open, AT_FDCWD, (const char* path, int flags, ...), path)
SDMA_OPEN(open64, AT_FDCWD, (const char* path, int flags, ...), path)
SDMA_OPEN(openat, dirfd, (int dirfd, const char* path, int flags, ...), dirfd, path)
SDMA_OPEN(openat64, dirfd, (int dirfd, const char* path, int flags, ...), dirfd, path)

// The functions that programs compiled with _FORTIFY_SOURCE call.
#define SDMA_OPEN_2(name)                                                                \
  extern "C" int name(const char*, int);                                                 \
  SDMA_FRONT int name(const char* path, int flags) {                                     \
    return open_at(AT_FDCWD, path, flags, [&] { return SDMA_REAL(name)(path, flags); }); \
  }
SDMA_OPEN_2(__open_2)
SDMA_OPEN_2(__open64_2)

SDMA_FRONT FILE* fopen(const char* path, const char* mode) { return open_stream(SDMA_REAL(fopen), path, mode); }
SDMA_FRONT FILE* fopen64(const char* path, const char* mode) { return open_stream(SDMA_REAL(fopen64), path, mode); }

SDMA_FRONT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  const auto type = _IOC_TYPE(request);
  if (type == 'K' || type == 'd') {
    const int before = errno;
    if (const auto device = device_of(fd)) {
      // As in the kernel, the device node selects the interface, not the number of the ioctl.
      const int error = is_dmabuf(*device)        ? ENOTTY
                        : is_drm(*device)         ? drm_ioctl(Node::made(), *device, request, argument)
                        : device->node == nullptr ? EBADF
                                                  : kfd_ioctl(*device->node, request, argument);
      if (error == 0) {
        errno = before;
        return 0;
      }
      errno = error;
      return -1;
    }
    errno = before;
  }
  return SDMA_REAL(ioctl)(fd, request, argument);
}
