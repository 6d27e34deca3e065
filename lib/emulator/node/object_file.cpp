// SPDX-License-Identifier: MIT
#include "object_file.hpp"

#include "../real.hpp"
#include "arena.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <mutex>

namespace sdma::emulator {
namespace {

/// What a record is in the arena.
struct Record {
  std::uint64_t bytes{}, offset{};
  std::uint32_t gpu{}, flags{}, nonce{}, ipc{}, ipc_flags{}, pad{};
};
constexpr std::uint32_t kMostRecords = 16'777'216;
constexpr off_t record_at(std::uint32_t slot) noexcept { return static_cast<off_t>(kRecords + slot * sizeof(Record)); }
static_assert(kRecords + kMostRecords * sizeof(Record) <= kFirstObject);

/// The bytes that holders of an object lock. They lie beyond the end of the file.
constexpr std::uint64_t kLocks = std::uint64_t{1} << 61;
constexpr unsigned kMostHolders = 65'536;
struct flock lock_of(short type, std::uint32_t slot, unsigned first, unsigned count) noexcept {
  struct flock l {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  l.l_start = static_cast<off_t>(kLocks + std::uint64_t{slot} * kMostHolders + first);
  l.l_len = count;
  return l;
}

/// Locks a byte that no other holder has.
bool lock_one(int fd, std::uint32_t slot) noexcept {
  for (unsigned n = 0; n < kMostHolders; ++n) {
    auto l = lock_of(F_WRLCK, slot, n, 1);
    if (SDMA_REAL(fcntl)(fd, F_OFD_SETLK, &l) == 0) return true;
    if (errno != EAGAIN && errno != EACCES) return false;
  }
  return errno = EMFILE, false;
}

}  // namespace

Source::~Source() {
  struct stat s {};
  if (SDMA_REAL(fstat)(fd, &s) == 0 && s.st_ino == inode) ::close(fd);
}

std::optional<ObjectInfo> read_record(int fd, std::uint32_t slot) noexcept {
  Record r;
  struct stat s {};
  if (slot == 0 || slot >= kMostRecords || SDMA_REAL(pread)(fd, &r, sizeof r, record_at(slot)) != sizeof r ||
      SDMA_REAL(fstat)(fd, &s) != 0)
    return std::nullopt;
  // A program can write anything into a file of this name.
  const bool inside = r.offset >= kFirstObject && r.offset % kPage == 0 && r.bytes % kPage == 0 && r.bytes != 0 &&
                      r.offset < kArenaBytes && r.bytes <= kArenaBytes - r.offset &&
                      static_cast<std::uint64_t>(s.st_size) == kArenaBytes;
  if (r.nonce == 0 || !inside) return std::nullopt;
  return ObjectInfo{.bytes = r.bytes,
                    .offset = r.offset,
                    .gpu = r.gpu,
                    .flags = r.flags,
                    .slot = slot,
                    .nonce = r.nonce,
                    .ipc = r.ipc,
                    .ipc_flags = r.ipc_flags,
                    .inode = s.st_ino};
}

bool write_record(int fd, const ObjectInfo& o) noexcept {
  if (o.slot == 0 || o.slot >= kMostRecords) return errno = ENOSPC, false;
  const Record r{.bytes = o.bytes,
                 .offset = o.offset,
                 .gpu = o.gpu,
                 .flags = o.flags,
                 .nonce = o.nonce,
                 .ipc = o.ipc,
                 .ipc_flags = o.ipc_flags};
  return SDMA_REAL(pwrite)(fd, &r, sizeof r, record_at(o.slot)) == sizeof r;
}

bool hold(int arena, const ObjectInfo& o) noexcept {
  if (!lock_one(arena, o.slot)) return false;
  // It may have been freed before it was locked, and its number may be another object's.
  const auto now = read_record(arena, o.slot);
  if (now && now->nonce == o.nonce) return true;
  let_go(arena, o.slot);
  return errno = EINVAL, false;
}

void let_go(int arena, std::uint32_t slot) noexcept {
  auto l = lock_of(F_UNLCK, slot, 0, kMostHolders);
  SDMA_REAL(fcntl)(arena, F_OFD_SETLK, &l);
}

bool is_held(int arena, std::uint32_t slot) noexcept {
  auto l = lock_of(F_WRLCK, slot, 0, kMostHolders);
  return SDMA_REAL(fcntl)(arena, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int away(int fd) noexcept {
  if (fd < 0) return fd;
  constexpr int kHigh = 900;
  constexpr rlim_t kEnough = 4096;
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  int high = -1;
  if (now.rlim_cur < kEnough && now.rlim_cur < now.rlim_max) {
    // The limit applies to new numbers only, so it is raised for a moment.
    static constinit std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const rlimit most{.rlim_cur = now.rlim_max, .rlim_max = now.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &most);
    high = SDMA_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, static_cast<int>(now.rlim_cur));
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  if (high < 0) high = SDMA_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, kHigh);
  if (high < 0) return fd;
  ::close(fd);
  return high;
}

bool size_permitted(std::uint64_t bytes) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    std::fprintf(stderr,
                 "sdma emulator: the limit on the size of files (ulimit -f) is %" PRIu64
                 " bytes, and the node needs a file of %" PRIu64 " in memory\n",
                 static_cast<std::uint64_t>(limit.rlim_cur), bytes);
  errno = EFBIG;
  return false;
}

int open_dmabuf(int arena, std::uint32_t slot, bool writable, int flags) noexcept {
  const int fd = SDMA_REAL(open)(FdLink(arena).path, O_WRONLY | O_APPEND | (flags & O_CLOEXEC));
  if (fd < 0) return -1;
  if (!lock_one(fd, slot)) return ::close(fd), -1;
  const auto tag = kTag | kDmabuf | (writable ? 0 : kReadOnlyDmabuf) | slot;
  SDMA_REAL(lseek)(fd, static_cast<off_t>(tag), SEEK_SET);
  return fd;
}

std::optional<ObjectInfo> object_of(int fd) noexcept {
  const auto d = descriptor_of(fd, nullptr);
  if (!d || !is_dmabuf(*d)) return std::nullopt;
  const int file = SDMA_REAL(open)(FdLink(fd).path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto o = read_record(file, static_cast<std::uint32_t>(d->tag));
  ::close(file);
  return o;
}

int open_object(int dmabuf, const ObjectInfo& o) noexcept {
  const int fd = SDMA_REAL(open)(FdLink(dmabuf).path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || hold(fd, o)) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

bool is_open(int fd) noexcept { return SDMA_REAL(fcntl)(fd, F_GETFD) >= 0; }

}  // namespace sdma::emulator
