// Interposes the stat family, access and readlink, so that the tree's entries and our descriptors look like the kernel's:
// /dev/kfd appears as a character device, although it is a memfd.
#include "../no_memory.hpp"
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
template <class Stat> int disguise(int fd, Stat& s) {
  if (!S_ISREG(s.st_mode) || s.st_nlink != 0) return 0;
  const int before = errno;
  if (const auto d = device_of(fd)) {
    if (!is_dmabuf(*d)) {  // a DMABUF's file has its size already
      Entry e{.kind = is_drm(*d) ? Kind::drm : Kind::kfd, .minor = minor_of(*d)};
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
  return 0;
}

/// `real`: the C library's fstatat or fstatat64.
template <class Stat, class Real> int status_at(Real real, int dirfd, const char* path, Stat* s, int flags) {
  return guarded(-1, [&] {
    const bool of_descriptor = path && path[0] == 0 && (flags & AT_EMPTY_PATH) != 0;
    const auto found = of_descriptor ? Found{} : find_entry(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    if (found.entry) return fill(*s, *found.entry), 0;
    const int r = real(dirfd, path, s, flags);
    return r == 0 && of_descriptor ? disguise(dirfd, *s) : r;
  });
}

/// `real`: the C library's fstat or fstat64.
template <class Stat, class Real> int status_of(Real real, int fd, Stat* s) {
  return guarded(-1, [&] {
    const int r = real(fd, s);
    return r == 0 ? disguise(fd, *s) : r;
  });
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

// `suffix`: nothing, or 64. The functions with underscores are for programs that were linked before glibc 2.33: their struct is the
// same, because 64-bit machines have one version of it.
#define SDMA_STAT(suffix)                                                                                   \
  extern "C" int __xstat##suffix(int, const char*, struct stat##suffix*);                                   \
  extern "C" int __lxstat##suffix(int, const char*, struct stat##suffix*);                                  \
  extern "C" int __fxstat##suffix(int, int, struct stat##suffix*);                                          \
  SDMA_FRONT int fstatat##suffix(int dirfd, const char* path, struct stat##suffix* s, int flags) noexcept { \
    return status_at(SDMA_REAL(fstatat##suffix), dirfd, path, s, flags);                                    \
  }                                                                                                         \
  SDMA_FRONT int stat##suffix(const char* path, struct stat##suffix* s) noexcept {                          \
    return status_at(SDMA_REAL(fstatat##suffix), AT_FDCWD, path, s, 0);                                     \
  }                                                                                                         \
  SDMA_FRONT int lstat##suffix(const char* path, struct stat##suffix* s) noexcept {                         \
    return status_at(SDMA_REAL(fstatat##suffix), AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);                   \
  }                                                                                                         \
  SDMA_FRONT int fstat##suffix(int fd, struct stat##suffix* s) noexcept {                                   \
    return status_of(SDMA_REAL(fstat##suffix), fd, s);                                                      \
  }                                                                                                         \
  SDMA_FRONT int __xstat##suffix(int, const char* path, struct stat##suffix* s) {                           \
    return status_at(SDMA_REAL(fstatat##suffix), AT_FDCWD, path, s, 0);                                     \
  }                                                                                                         \
  SDMA_FRONT int __lxstat##suffix(int, const char* path, struct stat##suffix* s) {                          \
    return status_at(SDMA_REAL(fstatat##suffix), AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);                   \
  }                                                                                                         \
  SDMA_FRONT int __fxstat##suffix(int, int fd, struct stat##suffix* s) {                                    \
    return status_of(SDMA_REAL(fstat##suffix), fd, s);                                                      \
  }
SDMA_STAT()
SDMA_STAT(64)

namespace {

int extended_status(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) {
  const int r = SDMA_REAL(statx)(dirfd, path, flags, mask, out);
  struct stat s {};
  if (path[0] == 0 && (flags & AT_EMPTY_PATH) != 0) {
    if (r != 0 || SDMA_REAL(fstat)(dirfd, &s) != 0) return r;
    const auto before = s.st_mode;
    (void)disguise(dirfd, s);
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

/// The answer of `ours` for an entry of the tree, otherwise that of `real`.
template <class R, class Ours, class Real>
R with_entry(int dirfd, const char* path, bool follow, Ours ours, Real real) {
  return guarded(R{-1}, [&]() -> R {
    const auto found = find_entry(dirfd, path, follow);
    return found.entry ? ours(*found.entry) : real();
  });
}

}  // namespace

SDMA_FRONT int statx(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  return guarded(-1, [&] { return extended_status(dirfd, path, flags, mask, out); });
}
SDMA_FRONT int access(const char* path, int mode) noexcept {
  return with_entry<int>(
      AT_FDCWD, path, true, [&](const Entry& e) { return check_access(e, mode); },
      [&] { return SDMA_REAL(access)(path, mode); });
}
SDMA_FRONT int faccessat(int dirfd, const char* path, int mode, int flags) noexcept {
  return with_entry<int>(
      dirfd, path, true, [&](const Entry& e) { return check_access(e, mode); },
      [&] { return SDMA_REAL(faccessat)(dirfd, path, mode, flags); });
}
SDMA_FRONT ssize_t readlink(const char* path, char* buffer, std::size_t bytes) noexcept {
  return with_entry<ssize_t>(
      AT_FDCWD, path, false, [&](const Entry& e) { return read_link(e, buffer, bytes); },
      [&] { return SDMA_REAL(readlink)(path, buffer, bytes); });
}
SDMA_FRONT ssize_t readlinkat(int dirfd, const char* path, char* buffer, std::size_t bytes) noexcept {
  return with_entry<ssize_t>(
      dirfd, path, false, [&](const Entry& e) { return read_link(e, buffer, bytes); },
      [&] { return SDMA_REAL(readlinkat)(dirfd, path, buffer, bytes); });
}
