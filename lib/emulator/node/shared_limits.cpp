// SPDX-License-Identifier: MIT
#include "shared_limits.hpp"

#include "../../core/abstract_address.hpp"
#include "../real.hpp"
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sdma::emulator {
namespace {

constexpr const char* kMachineName = "sdma-machine-";
constexpr unsigned kMostMachineId = 32;
/// Bytes to lock, beyond the end of the file: seats, then slots.
constexpr std::int64_t kSeatLocks = std::int64_t{1} << 40, kSlotLocks = std::int64_t{1} << 41;
constexpr std::int64_t slot_byte(std::uint32_t gpu, std::uint32_t engine, std::uint32_t slot) noexcept {
  constexpr std::uint32_t kMostSlots = 256, kMostEngines = 256;
  return kSlotLocks + (std::int64_t{gpu} * kMostEngines + engine) * kMostSlots + slot;
}

/// A socket with an abstract name, which exists as long as the socket; -1 if another has the name.
int bind_name(const char* name) noexcept {
  const sdma::detail::AbstractAddress at(name);
  const int fd = away(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0 || ::bind(fd, at.get(), at.bytes()) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return errno = error, -1;
}

/// The file of a machine with this name, through a process that has it; -1 if there is none.
int open_of_member(const char* name) noexcept {
  auto* const all = SDMA_REAL(fopen)("/proc/net/unix", "re");
  char line[256], path[64], room[64];
  int fd = -1;
  while (all && fd < 0 && std::fgets(line, sizeof line, all)) {
    const char* at = std::strstr(line, name);
    int pid = 0, number = 0;
    if (!at || at[-1] != '@' || std::sscanf(at + std::strlen(name), "-%d-%d", &pid, &number) != 2) continue;
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    if (memfd_name(path, room) == name) fd = SDMA_REAL(open)(path, O_RDWR | O_CLOEXEC);
  }
  if (all) std::fclose(all);
  return fd;
}

}  // namespace

SharedLimits::SharedLimits(std::string_view id) noexcept {
  if (id.empty() || id.size() > kMostMachineId || !size_permitted(sizeof(File))) return;
  fd_ = join(id);
  struct stat s {};
  if (fd_ >= 0 && SDMA_REAL(fstat)(fd_, &s) == 0) {
    inode_ = s.st_ino;
    // The mapping keeps our locks if the program closes all descriptors.
    file_ = reinterpret_cast<File*>(Arena::view(fd_, 0, page_up(sizeof(File))));
  }
  if (file_ && sit()) return;
  std::fprintf(stderr, "sdma emulator: limits of queues and memory count for process %d alone: %s\n", ::getpid(),
               std::strerror(errno));
  abandon();
}

/// Opens the file of the machine, or creates it, and becomes a member.
int SharedLimits::join(std::string_view id) noexcept {
  constexpr int kTries = 5000;
  char name[64], member[96];
  std::snprintf(name, sizeof name, "%s%.*s", kMachineName, static_cast<int>(id.size()), id.data());
  int joining = -1;
  for (int i = 0; i < kTries && (joining = bind_name(name)) < 0 && errno == EADDRINUSE; ++i) ::usleep(1000);
  if (joining < 0) return -1;
  int fd = away(open_of_member(name));
  if (fd < 0) {
    fd = away(::memfd_create(name, MFD_CLOEXEC));
    if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(page_up(sizeof(File)))) != 0) ::close(std::exchange(fd, -1));
  }
  std::snprintf(member, sizeof member, "%s-%d-%d", name, ::getpid(), fd);
  if (fd >= 0) name_ = bind_name(member);
  ::close(joining);
  return fd;
}

/// Takes a seat that no process has.
bool SharedLimits::sit() noexcept {
  for (std::uint32_t i = 0; i < kSeats; ++i) {
    if (!lock(kSeatLocks + i, true)) continue;
    seat_ = &file_->all[i];
    *seat_ = {};
    auto seats = __atomic_load_n(&file_->seats, __ATOMIC_RELAXED);
    while (seats < i + 1 &&
           !__atomic_compare_exchange_n(&file_->seats, &seats, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
    return true;
  }
  return errno = EUSERS, false;
}

bool SharedLimits::valid() const noexcept {
  struct stat s {};
  return fd_ >= 0 && SDMA_REAL(fstat)(fd_, &s) == 0 && s.st_ino == inode_;
}

bool SharedLimits::lock(std::int64_t byte, bool locked) const noexcept {
  struct flock l {};
  l.l_type = locked ? F_WRLCK : F_UNLCK;
  l.l_whence = SEEK_SET;
  l.l_start = byte;
  l.l_len = 1;
  return valid() && SDMA_REAL(fcntl)(fd_, F_OFD_SETLK, &l) == 0;
}

bool SharedLimits::take(std::uint32_t gpu, std::uint32_t engine, std::uint32_t slot) const noexcept {
  return !file_ || lock(slot_byte(gpu, engine, slot), true);
}
void SharedLimits::give_back(std::uint32_t gpu, std::uint32_t engine, std::uint32_t slot) const noexcept {
  (void)lock(slot_byte(gpu, engine, slot), false);
}

MemoryUse SharedLimits::used(std::uint32_t gpu) const noexcept {
  if (!file_) return alone_.of_gpus[gpu];
  MemoryUse sum;
  const auto seats = std::min<std::uint64_t>(__atomic_load_n(&file_->seats, __ATOMIC_ACQUIRE), kSeats);
  for (std::uint64_t i = 0; i < seats; ++i) sum += file_->all[i].of_gpus[gpu];
  return sum;
}

void SharedLimits::reap() noexcept {
  for (std::uint64_t i = 0; file_ && i < std::min<std::uint64_t>(file_->seats, kSeats); ++i) {
    auto& seat = file_->all[i];
    const auto byte = kSeatLocks + static_cast<std::int64_t>(i);
    // A process that joins meanwhile finds this seat locked, and takes another.
    if (&seat == seat_ || !lock(byte, true)) continue;
    seat = {};
    (void)lock(byte, false);
  }
}

SharedLimits::~SharedLimits() {
  if (file_) Arena::drop(reinterpret_cast<std::byte*>(file_), page_up(sizeof(File)));
  abandon();
}

void SharedLimits::abandon() noexcept {
  seat_ = &alone_;
  file_ = nullptr;
  // If the program has closed our descriptors, their numbers may be those of its files.
  if (valid())
    for (const int fd : {fd_, name_})
      if (fd >= 0) ::close(fd);
  fd_ = name_ = -1;
}

}  // namespace sdma::emulator
