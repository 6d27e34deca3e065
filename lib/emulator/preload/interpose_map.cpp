// Interposes mmap and lseek, only for descriptors of pages that belong to another object: memory from another process, and
// DMABUFs, which are mapped from their own beginning and report their size through lseek to the end. All other calls go straight
// to the kernel, without a look-up, because an allocator may call mmap while the loader is running.
#include "../node/node.hpp"
#include "../real.hpp"
#include "front.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace sdma::emulator {
namespace {

void* map(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  if (fd < 0 || (flags & MAP_ANONYMOUS) != 0 || (flags & MAP_TYPE) == MAP_PRIVATE)
    return machine_mmap(at, bytes, rights, flags, fd, offset);
  const int before = errno;
  const auto d = device_of(fd);
  errno = before;
  if (!d) return machine_mmap(at, bytes, rights, flags, fd, offset);
  if (is_dmabuf(*d)) {
    Passed p;
    const auto from = static_cast<std::uint64_t>(offset);
    if (!read_passed(fd, number(*d), &p) || from > p.bytes || bytes > p.bytes - from) {
      errno = EINVAL;
      return MAP_FAILED;
    }
    return machine_mmap(at, bytes, rights, flags, fd, static_cast<off_t>(p.offset + from));
  }
  if (d->node)
    if (const auto place = d->node->arena.stands_for(static_cast<std::uint64_t>(offset)))
      return machine_mmap(at, bytes, rights, flags, place->fd, static_cast<off_t>(place->offset));
  return machine_mmap(at, bytes, rights, flags, fd, offset);
}

off_t seek(int fd, off_t offset, int whence) noexcept {
  const auto d = device_of(fd);
  if (!d || !is_dmabuf(*d)) return SDMA_REAL(lseek)(fd, offset, whence);
  Passed p;
  if (offset != 0 || (whence != SEEK_SET && whence != SEEK_END) || !read_passed(fd, number(*d), &p)) {
    errno = EINVAL;
    return -1;
  }
  return whence == SEEK_SET ? 0 : static_cast<off_t>(p.bytes);
}

}  // namespace
}  // namespace sdma::emulator

using namespace sdma::emulator;

SDMA_FRONT void* mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) noexcept {
  return map(at, bytes, rights, flags, fd, offset);
}
SDMA_FRONT void* mmap64(void* at, std::size_t bytes, int rights, int flags, int fd, off64_t offset) noexcept {
  return map(at, bytes, rights, flags, fd, offset);
}
SDMA_FRONT off_t lseek(int fd, off_t offset, int whence) noexcept {
  const int before = errno;
  const auto r = seek(fd, offset, whence);
  if (r >= 0) errno = before;
  return r;
}
SDMA_FRONT off64_t lseek64(int fd, off64_t offset, int whence) noexcept { return ::lseek(fd, offset, whence); }
