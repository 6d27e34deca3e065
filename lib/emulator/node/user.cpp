// SPDX-License-Identifier: MIT
#include "user.hpp"

#include "../real.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace sdma::emulator {
namespace {

/// Lets the kernel copy within this process, so that a bad address gives EFAULT. Copies directly if that is forbidden.
template <class Fn> bool copy(Fn&& call, void* to, const void* from, std::size_t bytes) noexcept {
  const ssize_t n = call();
  if (n >= 0) return static_cast<std::size_t>(n) == bytes;
  if (errno != ENOSYS && errno != EPERM) return false;
  std::memcpy(to, from, bytes);
  return true;
}

}  // namespace

bool from_user(void* to, std::uint64_t from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  if (!plausible(from, bytes)) return false;
  const iovec mine{to, bytes}, theirs{reinterpret_cast<void*>(from), bytes};
  return copy([&] { return SDMA_REAL(process_vm_readv)(::getpid(), &mine, 1, &theirs, 1, 0); }, to, theirs.iov_base,
              bytes);
}

bool to_user(std::uint64_t to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  if (!plausible(to, bytes)) return false;
  const iovec mine{const_cast<void*>(from), bytes}, theirs{reinterpret_cast<void*>(to), bytes};
  return copy([&] { return SDMA_REAL(process_vm_writev)(::getpid(), &mine, 1, &theirs, 1, 0); }, theirs.iov_base, from,
              bytes);
}

int check_pages(std::uint64_t address, std::uint64_t bytes, bool written) {
  if (!plausible(address, bytes)) return EFAULT;
  auto* maps = SDMA_REAL(fopen)("/proc/self/maps", "re");
  if (!maps) return errno == ENOMEM ? ENOMEM : 0;  // a container without /proc: nothing can be checked
  char line[512];
  int error = EFAULT;
  const auto end = address + bytes;
  // Lines are sorted, so `address` advances while ranges follow each other without a gap.
  while (std::fgets(line, sizeof line, maps)) {
    std::uint64_t from = 0, to = 0;
    char rights[5]{};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, rights) != 3 || to <= address) continue;
    if (from > address || rights[0] != 'r') break;
    if (written && rights[1] != 'w') {
      error = EPERM;
      break;
    }
    address = to;
    if (address >= end) {
      error = 0;
      break;
    }
  }
  std::fclose(maps);
  return error;
}

}  // namespace sdma::emulator
