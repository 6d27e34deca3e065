// SPDX-License-Identifier: MIT
// Interposes mmap, lseek, and the functions that read and write through a descriptor, for our descriptors only.
//
//   mmap     of a device at an offset of the node maps what lies there, with the driver's flags; of a DMABUF, its
//            bytes. A system call finds the same for objects of this process. All other calls go straight to the
//            kernel, and those without a file without a look-up, because an allocator may call mmap while the loader
//            is running
//   munmap   of memory to which SVM has given GPUs access also takes the access away; so does mmap in its place,
//            because the C library's own calls of munmap, as free() makes them, are not seen
//   lseek    of a DMABUF reports its size; a device has no position that a program could change
//   read ... find the end of the file, or are not permitted, because of the position of our descriptors. Afterwards,
//            the answer is changed to that of a device without such functions. pread has a position of its own, so it
//            is checked before
//   write    to a descriptor of SMI events also fails in the kernel first, and then sets the mask
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>

namespace sdma::emulator {
namespace {

/// Gives a mapping the flags of the driver's: no core dump contains it, and a forked child inherits memory alone.
void* of_driver(void* at, std::size_t bytes, bool memory) noexcept {
  if (at == MAP_FAILED) return at;
  ::madvise(at, bytes, MADV_DONTDUMP);
  if (!memory) ::madvise(at, bytes, MADV_DONTFORK);
  return at;
}

/// The pages there are others from now on: a GPU's access to those before ends.
void forget_access(const void* at, std::size_t bytes) noexcept {
  if (auto* n = Node::made(); n && n->svm.any()) n->svm.forget(reinterpret_cast<std::uint64_t>(at), bytes);
}

void* map(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  const auto plain = [&](int file, off_t from) { return machine_mmap(at, bytes, rights, flags, file, from); };
  if (fd < 0 || (flags & MAP_ANONYMOUS) != 0) return plain(fd, offset);
  const int before = errno;
  const auto d = device_of(fd);
  errno = before;
  const auto from = static_cast<std::uint64_t>(offset);
  if (!d) return plain(fd, offset);
  if (is_dmabuf(*d)) {
    const auto o = object_of(fd);
    if (!o || from > o->bytes || bytes > o->bytes - from) return errno = EINVAL, MAP_FAILED;
    const bool shared_write = (rights & PROT_WRITE) != 0 && (flags & MAP_TYPE) != MAP_PRIVATE;
    if (shared_write && (d->tag & kReadOnlyDmabuf) != 0) return errno = EACCES, MAP_FAILED;
    const int file = open_object(fd, *o);
    if (file < 0) return MAP_FAILED;
    auto* const p = of_driver(plain(file, static_cast<off_t>(o->offset + from)), bytes, true);
    const int error = errno;
    ::close(file);
    errno = error;
    return p;
  }
  if (!d->node) return errno = EACCES, MAP_FAILED;
  const auto place = d->node->arena.find(from, bytes);
  if (!place) return errno = EINVAL, MAP_FAILED;
  // Through the program's descriptor, so that the kernel checks its rights and joins neighbours.
  const int file = place->fd == d->node->arena.fd() ? fd : place->fd;
  return of_driver(plain(file, static_cast<off_t>(place->offset)), bytes,
                   from >= kFirstObject && from != Events::kEventsOffset);
}

off_t seek(int fd, off_t offset, int whence) noexcept {
  const auto d = device_of(fd);
  if (!d) return SDMA_REAL(lseek)(fd, offset, whence);
  if (is_drm(*d)) return 0;
  if (!is_dmabuf(*d)) return errno = ESPIPE, -1;
  const auto o = object_of(fd);
  if (offset != 0 || (whence != SEEK_SET && whence != SEEK_END) || !o) return errno = EINVAL, -1;
  return whence == SEEK_SET ? 0 : static_cast<off_t>(o->bytes);
}

/// The result of a read or write. Those of a device end at the end of its file, or are not permitted.
ssize_t answered(int fd, ssize_t result) noexcept {
  const int error = errno;
  if (result > 0 || (result < 0 && error != EBADF && error != EPERM)) return result;
  const bool ours = device_of(fd).has_value();
  errno = ours ? EINVAL : error;
  return ours ? -1 : result;
}

/// A write that has failed: to a descriptor of SMI events?
ssize_t write_mask(int fd, const void* from, std::size_t bytes) noexcept {
  auto* n = Node::made();
  const auto written = n ? n->smi.write(fd, reinterpret_cast<std::uint64_t>(from), bytes) : std::nullopt;
  errno = EBADF;
  if (!written) return answered(fd, -1);
  if (*written >= 0) return *written;
  errno = static_cast<int>(-*written);
  return -1;
}

}  // namespace

void* map_for_program(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  auto* const p = map(at, bytes, rights, flags, fd, offset);
  if (p != MAP_FAILED) forget_access(p, bytes);
  return p;
}
int unmap_for_program(void* at, std::size_t bytes) noexcept {
  forget_access(at, bytes);
  return machine_munmap(at, bytes);
}

}  // namespace sdma::emulator

using namespace sdma::emulator;

SDMA_FRONT void* mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  return map_for_program(at, bytes, rights, flags, fd, offset);
}
SDMA_SAME(mmap64, mmap)
SDMA_FRONT int munmap(void* at, std::size_t bytes) noexcept { return unmap_for_program(at, bytes); }
SDMA_FRONT off_t lseek(int fd, off_t offset, int whence) noexcept {
  const int before = errno;
  const auto r = seek(fd, offset, whence);
  if (r >= 0) errno = before;
  return r;
}
SDMA_SAME(lseek64, lseek)

#define SDMA_TRANSFER(name, parameters, ...) \
  SDMA_FRONT ssize_t name parameters { return answered(fd, SDMA_REAL(name)(fd, __VA_ARGS__)); }
#define SDMA_PREAD(name, parameters, ...)                                  \
  SDMA_FRONT ssize_t name parameters {                                     \
    if (Node::made() && device_of(fd)) return errno = EINVAL, ssize_t{-1}; \
    return SDMA_REAL(name)(fd, __VA_ARGS__);                               \
  }
SDMA_TRANSFER(read, (int fd, void* to, std::size_t bytes), to, bytes)
SDMA_FRONT ssize_t write(int fd, const void* from, std::size_t bytes) {
  const auto result = SDMA_REAL(write)(fd, from, bytes);
  return result >= 0 || errno != EBADF ? answered(fd, result) : write_mask(fd, from, bytes);
}
SDMA_PREAD(pread, (int fd, void* to, std::size_t bytes, off_t at), to, bytes, at)
SDMA_SAME(pread64, pread)
SDMA_TRANSFER(pwrite, (int fd, const void* from, std::size_t bytes, off_t at), from, bytes, at)
SDMA_SAME(pwrite64, pwrite)
SDMA_TRANSFER(readv, (int fd, const iovec* to, int count), to, count)
SDMA_TRANSFER(writev, (int fd, const iovec* from, int count), from, count)

// The functions that programs compiled with _FORTIFY_SOURCE call.
extern "C" {
ssize_t __read_chk(int, void*, std::size_t, std::size_t);
ssize_t __pread_chk(int, void*, std::size_t, off_t, std::size_t);
ssize_t __pread64_chk(int, void*, std::size_t, off64_t, std::size_t);
}
SDMA_TRANSFER(__read_chk, (int fd, void* to, std::size_t bytes, std::size_t room), to, bytes, room)
SDMA_PREAD(__pread_chk, (int fd, void* to, std::size_t bytes, off_t at, std::size_t room), to, bytes, at, room)
SDMA_PREAD(__pread64_chk, (int fd, void* to, std::size_t bytes, off64_t at, std::size_t room), to, bytes, at, room)
