// SPDX-License-Identifier: MIT
// Interposes the stat family, access, readlink and others that describe a path, so that the tree's entries and our
// descriptors look like the kernel's: /dev/kfd appears as a character device, although it is a memfd.
#include "../no_memory.hpp"
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sdma::emulator { namespace {

constexpr unsigned kDrmMajor = 226, kKfdMajor = 510;

template <class Stat> void fill(Stat& s, const Entry& e) {
  std::memset(&s, 0, sizeof s);
  s.st_dev = e.device;
  s.st_ino = e.inode;
  s.st_nlink = 1;
  s.st_blksize = 4096;
  switch (e.kind) {
    case Kind::directory: s.st_mode = S_IFDIR | 0755; break;
    case Kind::text:
      s.st_mode = S_IFREG | (e.root_only ? 0400u : 0444u);
      // sysfs reports one page for any text. But these are memfds, and a copier finds their real length with SEEK_HOLE.
      s.st_size = e.live ? 4096 : static_cast<off_t>(e.text.size());
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
    if (is_dmabuf(*d)) {
      const auto o = object_of(fd);
      s.st_size = o ? static_cast<off_t>(o->bytes) : 0;
      s.st_blocks = (s.st_size + 511) / 512;
      s.st_ino += o ? o->slot : 0;  // an arena has many
    } else {
      Entry e{.kind = is_drm(*d) ? Kind::drm : Kind::kfd, .minor = minor_of(*d)};
      e.inode = s.st_ino + d->tag;
      fill(s, e);
    }
  } else if (const auto path = directory_path(fd); !path.empty()) {
    if (const auto* e = tree().find(path)) fill(s, *e);
  } else if (const auto text = open_text(fd)) {
    const auto bytes = s.st_size;
    fill(s, *text);
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
    const int r = real(found.dirfd(dirfd), found.name(path), s, flags);
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
  if (((mode & R_OK) != 0 && !may_read(e)) || ((mode & W_OK) != 0 && !writable) ||
      ((mode & X_OK) != 0 && e.kind != Kind::directory)) {
    errno = EACCES;
    return -1;
  }
  return 0;
}

}}  // namespace sdma::emulator

using namespace sdma::emulator;

// `suffix`: nothing, or 64. The functions with underscores are for programs that were linked before glibc 2.33: their
// struct is the same, because 64-bit machines have one version of it.
#define SDMA_STAT(suffix)                                                                                              \
  using Stat##suffix = struct stat##suffix;                                                                            \
  extern "C" int __xstat##suffix(int, const char*, Stat##suffix*);                                                     \
  extern "C" int __lxstat##suffix(int, const char*, Stat##suffix*);                                                    \
  extern "C" int __fxstat##suffix(int, int, Stat##suffix*);                                                            \
  extern "C" int __fxstatat##suffix(int, int, const char*, Stat##suffix*, int);                                        \
  SDMA_FRONT int fstatat##suffix(int dirfd, const char* path, Stat##suffix* s, int flags) noexcept {                   \
    return status_at(SDMA_REAL(fstatat##suffix), dirfd, path, s, flags);                                               \
  }                                                                                                                    \
  SDMA_FRONT int stat##suffix(const char* path, Stat##suffix* s) noexcept {                                            \
    return status_at([](int, const char* p, auto* to, int) { return SDMA_REAL(stat##suffix)(p, to); }, AT_FDCWD, path, \
                     s, 0);                                                                                            \
  }                                                                                                                    \
  SDMA_FRONT int lstat##suffix(const char* path, Stat##suffix* s) noexcept {                                           \
    return status_at([](int, const char* p, auto* to, int) { return SDMA_REAL(lstat##suffix)(p, to); }, AT_FDCWD,      \
                     path, s, AT_SYMLINK_NOFOLLOW);                                                                    \
  }                                                                                                                    \
  SDMA_FRONT int fstat##suffix(int fd, Stat##suffix* s) noexcept {                                                     \
    return status_of(SDMA_REAL(fstat##suffix), fd, s);                                                                 \
  }                                                                                                                    \
  SDMA_FRONT int __xstat##suffix(int v, const char* path, Stat##suffix* s) {                                           \
    return status_at([v](int, const char* p, auto* to, int) { return SDMA_REAL(__xstat##suffix)(v, p, to); },          \
                     AT_FDCWD, path, s, 0);                                                                            \
  }                                                                                                                    \
  SDMA_FRONT int __lxstat##suffix(int v, const char* path, Stat##suffix* s) {                                          \
    return status_at([v](int, const char* p, auto* to, int) { return SDMA_REAL(__lxstat##suffix)(v, p, to); },         \
                     AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);                                                          \
  }                                                                                                                    \
  SDMA_FRONT int __fxstat##suffix(int v, int fd, Stat##suffix* s) {                                                    \
    return status_of([v](int f, auto* to) { return SDMA_REAL(__fxstat##suffix)(v, f, to); }, fd, s);                   \
  }                                                                                                                    \
  SDMA_FRONT int __fxstatat##suffix(int v, int dirfd, const char* path, Stat##suffix* s, int flags) {                  \
    return status_at(                                                                                                  \
        [v](int at, const char* p, auto* to, int how) { return SDMA_REAL(__fxstatat##suffix)(v, at, p, to, how); },    \
        dirfd, path, s, flags);                                                                                        \
  }
SDMA_STAT()
SDMA_STAT(64)

namespace {

int extended_status(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) {
  struct stat s {};
  if (path && path[0] == 0 && (flags & AT_EMPTY_PATH) != 0) {
    const int r = SDMA_REAL(statx)(dirfd, path, flags, mask, out);
    if (r != 0 || SDMA_REAL(fstat)(dirfd, &s) != 0) return r;
    const auto before = s.st_mode;
    (void)disguise(dirfd, s);
    if (s.st_mode == before) return r;
  } else {
    const auto found = find_entry(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
    if (!found.entry) return SDMA_REAL(statx)(found.dirfd(dirfd), found.name(path), flags, mask, out);
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
  out->stx_dev_major = major(s.st_dev);
  out->stx_dev_minor = minor(s.st_dev);
  return 0;
}

/// The answer of `ours` for an entry of the tree, otherwise that of `real` for the path that the kernel can find.
template <class R, class Ours, class Real>
R with_entry(int dirfd, const char* path, bool follow, Ours ours, Real real) {
  return guarded(R{-1}, [&]() -> R {
    const auto found = find_entry(dirfd, path, follow);
    return found.entry ? ours(*found.entry) : real(found.dirfd(dirfd), found.name(path));
  });
}

/// `real`: the C library's function, with the mode.
template <class Real> int accessible(int dirfd, const char* path, int mode, Real real) {
  return with_entry<int>(
      dirfd, path, true, [&](const Entry& e) { return check_access(e, mode); }, real);
}
template <class Real> ssize_t link_target(int dirfd, const char* path, char* to, std::size_t bytes, Real real) {
  return with_entry<ssize_t>(
      dirfd, path, false, [&](const Entry& e) { return read_link(e, to, bytes); }, real);
}
/// Files of the tree have no extended attributes.
template <class R, class Real> R attribute(const char* path, bool follow, int error, Real real) {
  return with_entry<R>(
      AT_FDCWD, path, follow, [&](const Entry&) { return error == 0 ? R{0} : (errno = error, R{-1}); },
      [&](int, const char* file) { return real(file); });
}

}  // namespace

SDMA_FRONT int statx(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  return guarded(-1, [&] { return extended_status(dirfd, path, flags, mask, out); });
}
SDMA_FRONT int access(const char* path, int mode) noexcept {
  return accessible(AT_FDCWD, path, mode, [&](int, const char* file) { return SDMA_REAL(access)(file, mode); });
}
SDMA_FRONT int euidaccess(const char* path, int mode) noexcept {
  return accessible(AT_FDCWD, path, mode, [&](int, const char* file) { return SDMA_REAL(euidaccess)(file, mode); });
}
SDMA_FRONT int eaccess(const char* path, int mode) noexcept { return ::euidaccess(path, mode); }
SDMA_FRONT int faccessat(int dirfd, const char* path, int mode, int flags) noexcept {
  return accessible(dirfd, path, mode,
                    [&](int at, const char* file) { return SDMA_REAL(faccessat)(at, file, mode, flags); });
}

// The functions with underscores are those that programs compiled with _FORTIFY_SOURCE call.
extern "C" {
ssize_t __readlink_chk(const char*, char*, std::size_t, std::size_t);
ssize_t __readlinkat_chk(int, const char*, char*, std::size_t, std::size_t);
}
SDMA_FRONT ssize_t readlink(const char* path, char* to, std::size_t bytes) noexcept {
  return link_target(AT_FDCWD, path, to, bytes,
                     [&](int, const char* file) { return SDMA_REAL(readlink)(file, to, bytes); });
}
SDMA_FRONT ssize_t readlinkat(int dirfd, const char* path, char* to, std::size_t bytes) noexcept {
  return link_target(dirfd, path, to, bytes,
                     [&](int at, const char* file) { return SDMA_REAL(readlinkat)(at, file, to, bytes); });
}
SDMA_FRONT ssize_t __readlink_chk(const char* path, char* to, std::size_t bytes, std::size_t room) {
  return link_target(AT_FDCWD, path, to, bytes,
                     [&](int, const char* file) { return SDMA_REAL(__readlink_chk)(file, to, bytes, room); });
}
SDMA_FRONT ssize_t __readlinkat_chk(int dirfd, const char* path, char* to, std::size_t bytes, std::size_t room) {
  return link_target(dirfd, path, to, bytes,
                     [&](int at, const char* file) { return SDMA_REAL(__readlinkat_chk)(at, file, to, bytes, room); });
}

// A path of the tree lies in the file system of the machine's directory that contains it.
#define SDMA_FILE_SYSTEM(name, type)                                                               \
  SDMA_FRONT int name(const char* path, struct type* s) noexcept {                                 \
    return with_entry<int>(                                                                        \
        AT_FDCWD, path, true,                                                                      \
        [&](const Entry& e) {                                                                      \
          return SDMA_REAL(name)(e.kind == Kind::kfd || e.kind == Kind::drm ? "/dev" : "/sys", s); \
        },                                                                                         \
        [&](int, const char* file) { return SDMA_REAL(name)(file, s); });                          \
  }
SDMA_FILE_SYSTEM(statfs, statfs)
SDMA_FILE_SYSTEM(statfs64, statfs64)
SDMA_FILE_SYSTEM(statvfs, statvfs)
SDMA_FILE_SYSTEM(statvfs64, statvfs64)

#define SDMA_ATTRIBUTES(prefix, follow)                                                                              \
  SDMA_FRONT ssize_t prefix##getxattr(const char* path, const char* name, void* to, std::size_t bytes) noexcept {    \
    return attribute<ssize_t>(path, follow, ENODATA,                                                                 \
                              [&](const char* file) { return SDMA_REAL(prefix##getxattr)(file, name, to, bytes); }); \
  }                                                                                                                  \
  SDMA_FRONT ssize_t prefix##listxattr(const char* path, char* to, std::size_t bytes) noexcept {                     \
    return attribute<ssize_t>(path, follow, 0,                                                                       \
                              [&](const char* file) { return SDMA_REAL(prefix##listxattr)(file, to, bytes); });      \
  }
SDMA_ATTRIBUTES(, true)
SDMA_ATTRIBUTES(l, false)
