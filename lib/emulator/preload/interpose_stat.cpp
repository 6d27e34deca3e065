// Interposes the stat family, access and readlink, so that the tree's entries and our descriptors look like the kernel's:
// /dev/kfd appears as a character device, although it is a memfd.
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "open_entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr unsigned kDrmMajor = 226, kKfdMajor = 510;

template <class Stat> void fill(Stat& s, const Entry& e) {
  std::memset(&s, 0, sizeof s);
  s.st_ino = e.inode;
  s.st_nlink = 1;
  s.st_blksize = 4096;
  switch (e.kind) {
    case Kind::directory: s.st_mode = S_IFDIR | 0755; break;
    case Kind::text:
      s.st_mode = S_IFREG | 0444;
      // sysfs reports one page for any text. But these are memfds, and a copier finds their real length with SEEK_HOLE.
      s.st_size = static_cast<off_t>(e.text.size());
      s.st_blocks = (s.st_size + 511) / 512;
      break;
    case Kind::kfd:
      s.st_mode = S_IFCHR | 0666;
      s.st_rdev = makedev(kKfdMajor, 0);
      break;
    case Kind::link:
      s.st_mode = S_IFLNK | 0777;
      s.st_size = static_cast<off_t>(e.text.size());
      break;
    case Kind::drm:
      s.st_mode = S_IFCHR | 0666;
      s.st_rdev = makedev(kDrmMajor, e.minor);
      break;
  }
}

/// Changes the result of fstat on one of our memfds to that of the device or directory.
template <class Stat> void disguise(int fd, Stat& s) {
  if (!S_ISREG(s.st_mode) || s.st_nlink != 0) return;
  const int before = errno;
  if (const auto d = device_of(fd)) {
    if (is_dmabuf(*d)) {
      Passed p;
      if (read_passed(fd, number(*d), &p)) s.st_size = static_cast<off_t>(p.bytes);
    } else {
      Entry e{.kind = is_drm(*d) ? Kind::drm : Kind::kfd, .minor = number(*d)};
      e.inode = s.st_ino + d->tag;
      fill(s, e);
    }
  } else if (const auto path = directory_path(fd); !path.empty()) {
    if (const auto* e = tree().find(path)) fill(s, *e);
  } else if (const auto inode = file_inode(fd); inode != 0) {
    const auto bytes = s.st_size;
    fill(s, Entry{.kind = Kind::text, .inode = inode});
    s.st_size = bytes;
    s.st_blocks = (bytes + 511) / 512;
  }
  errno = before;
}

template <class Stat, class Real> int by_path(int dirfd, const char* path, Stat* s, Real real, bool follow = true) {
  const auto found = find_entry(dirfd, path, follow);
  if (!found.entry) return real();
  fill(*s, *found.entry);
  return 0;
}

template <class Stat, class Real> int by_fd(int fd, Stat* s, Real real) {
  const int r = real();
  if (r == 0) disguise(fd, *s);
  return r;
}

ssize_t read_link(const Entry& e, char* buffer, std::size_t bytes) {
  if (e.kind == Kind::link) return static_cast<ssize_t>(e.text.copy(buffer, bytes));
  errno = EINVAL;
  return -1;
}

int check_access(const Entry& e, int mode) {
  const bool writable = e.kind == Kind::kfd || e.kind == Kind::drm;
  if (((mode & W_OK) != 0 && !writable) || ((mode & X_OK) != 0 && e.kind != Kind::directory)) {
    errno = EACCES;
    return -1;
  }
  return 0;
}

}  // namespace
}  // namespace sdma::emulator

using namespace sdma::emulator;

#define SDMA_STAT(name, Stat, follow)                                         \
  SDMA_FRONT int name(const char* path, Stat* s) noexcept {                   \
    return by_path(                                                           \
        AT_FDCWD, path, s, [&] { return SDMA_REAL(name)(path, s); }, follow); \
  }
SDMA_STAT(stat, struct stat, true)
SDMA_STAT(stat64, struct stat64, true)
SDMA_STAT(lstat, struct stat, false)
SDMA_STAT(lstat64, struct stat64, false)

#define SDMA_FSTAT(name, Stat)                                   \
  SDMA_FRONT int name(int fd, Stat* s) noexcept {                \
    return by_fd(fd, s, [&] { return SDMA_REAL(name)(fd, s); }); \
  }
SDMA_FSTAT(fstat, struct stat)
SDMA_FSTAT(fstat64, struct stat64)

#define SDMA_FSTATAT(name, Stat)                                                                                     \
  SDMA_FRONT int name(int dirfd, const char* path, Stat* s, int flags) noexcept {                                    \
    if (path && path[0] == 0 && (flags & AT_EMPTY_PATH) != 0)                                                        \
      return by_fd(dirfd, s, [&] { return SDMA_REAL(name)(dirfd, path, s, flags); });                                \
    return by_path(                                                                                                  \
        dirfd, path, s, [&] { return SDMA_REAL(name)(dirfd, path, s, flags); }, (flags & AT_SYMLINK_NOFOLLOW) == 0); \
  }
SDMA_FSTATAT(fstatat, struct stat)
SDMA_FSTATAT(fstatat64, struct stat64)

// For programs that were linked before glibc 2.33.
#define SDMA_XSTAT(name, Stat, follow)                                                 \
  extern "C" int name(int, const char*, Stat*);                                        \
  SDMA_FRONT int name(int version, const char* path, Stat* s) {                        \
    return by_path(                                                                    \
        AT_FDCWD, path, s, [&] { return SDMA_REAL(name)(version, path, s); }, follow); \
  }
SDMA_XSTAT(__xstat, struct stat, true)
SDMA_XSTAT(__xstat64, struct stat64, true)
SDMA_XSTAT(__lxstat, struct stat, false)
SDMA_XSTAT(__lxstat64, struct stat64, false)
#define SDMA_FXSTAT(name, Stat)                                           \
  extern "C" int name(int, int, Stat*);                                   \
  SDMA_FRONT int name(int version, int fd, Stat* s) {                     \
    return by_fd(fd, s, [&] { return SDMA_REAL(name)(version, fd, s); }); \
  }
SDMA_FXSTAT(__fxstat, struct stat)
SDMA_FXSTAT(__fxstat64, struct stat64)

SDMA_FRONT int statx(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  const int r = SDMA_REAL(statx)(dirfd, path, flags, mask, out);
  struct stat s {};
  if (path[0] == 0 && (flags & AT_EMPTY_PATH) != 0) {
    if (r != 0 || SDMA_REAL(fstat)(dirfd, &s) != 0) return r;
    const auto before = s.st_mode;
    disguise(dirfd, s);
    if (s.st_mode == before) return r;
  } else {
    const auto found = find_entry(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    if (!found.entry) return r;
    fill(s, *found.entry);
  }
  std::memset(out, 0, sizeof *out);
  out->stx_mask = STATX_BASIC_STATS;
  out->stx_blksize = 4096;
  out->stx_nlink = 1;
  out->stx_mode = static_cast<std::uint16_t>(s.st_mode);
  out->stx_ino = s.st_ino;
  out->stx_size = static_cast<std::uint64_t>(s.st_size);
  out->stx_rdev_major = major(s.st_rdev);
  out->stx_rdev_minor = minor(s.st_rdev);
  return 0;
}

SDMA_FRONT int access(const char* path, int mode) noexcept {
  const auto found = find_entry(AT_FDCWD, path);
  return found.entry ? check_access(*found.entry, mode) : SDMA_REAL(access)(path, mode);
}
SDMA_FRONT int faccessat(int dirfd, const char* path, int mode, int flags) noexcept {
  const auto found = find_entry(dirfd, path);
  return found.entry ? check_access(*found.entry, mode) : SDMA_REAL(faccessat)(dirfd, path, mode, flags);
}
SDMA_FRONT ssize_t readlink(const char* path, char* buffer, std::size_t bytes) noexcept {
  const auto found = find_entry(AT_FDCWD, path, false);
  return found.entry ? read_link(*found.entry, buffer, bytes) : SDMA_REAL(readlink)(path, buffer, bytes);
}
SDMA_FRONT ssize_t readlinkat(int dirfd, const char* path, char* buffer, std::size_t bytes) noexcept {
  const auto found = find_entry(dirfd, path, false);
  return found.entry ? read_link(*found.entry, buffer, bytes) : SDMA_REAL(readlinkat)(dirfd, path, buffer, bytes);
}
