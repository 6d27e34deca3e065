// SPDX-License-Identifier: MIT
#include "object_file.hpp"

#include "../real.hpp"
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
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

constexpr const char* kObjectName = "sdma-object-%x-%x-%x";  ///< gpu, flags, nonce

std::optional<ObjectInfo> named(std::string_view name, const struct stat& s) noexcept {
  char text[64];
  const auto n = name.copy(text, sizeof text - 1);
  text[n] = 0;
  ObjectInfo o{.bytes = static_cast<std::uint64_t>(s.st_size), .inode = s.st_ino};
  if (std::sscanf(text, kObjectName, &o.gpu, &o.flags, &o.nonce) != 3) return std::nullopt;
  return o;
}

}  // namespace

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

int create_object(const ObjectInfo& o) noexcept {
  if (!size_permitted(o.bytes)) return -1;
  char name[64];
  std::snprintf(name, sizeof name, kObjectName, o.gpu, o.flags, o.nonce);
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fd;
  if (::ftruncate(fd, static_cast<off_t>(o.bytes)) != 0 ||
      SDMA_REAL(fcntl)(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
  }
  return away(fd);
}

std::optional<ObjectInfo> object_of(int fd) noexcept {
  struct stat s {};
  if (fd < 0 || SDMA_REAL(fstat)(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_nlink != 0) return std::nullopt;
  char room[64];
  const auto o = named(memfd_name(FdLink(fd).path, room), s);
  // Any program can make a file of this name, but the size of ours cannot change.
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
  return o && (SDMA_REAL(fcntl)(fd, F_GET_SEALS) & kSealed) == kSealed ? o : std::nullopt;
}

std::optional<ObjectInfo> object_of(const char* link) noexcept {
  struct stat s {};
  char room[64];
  const auto name = memfd_name(link, room);
  if (name.empty() || SDMA_REAL(fstatat)(AT_FDCWD, link, &s, 0) != 0) return std::nullopt;
  return named(name, s);
}

std::optional<std::uint32_t> gpu_of_object(std::string_view name) noexcept {
  const auto o = named(name, {});
  return o ? std::optional(o->gpu) : std::nullopt;
}

bool is_open(int fd) noexcept { return SDMA_REAL(fcntl)(fd, F_GETFD) >= 0; }

int open_object(int fd, int flags) noexcept { return SDMA_REAL(open)(FdLink(fd).path, flags); }

}  // namespace sdma::emulator
