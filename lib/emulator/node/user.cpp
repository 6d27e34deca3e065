// SPDX-License-Identifier: MIT
#include "user.hpp"

#include "../real.hpp"

#include "../../core/descriptor.hpp"
#include "../../core/maps.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
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
  const detail::Descriptor maps(SDMA_REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (!maps) return errno == ENOMEM ? ENOMEM : 0;  // a container without /proc: nothing can be checked
  int error = EFAULT;
  const auto end = address + bytes;
  // Lines are sorted, so `address` advances while ranges follow each other without a gap.
  detail::each_mapping(maps.get(), [&](const detail::MapsLine& m) {
    if (m.to <= address) return true;
    if (m.from > address || !m.readable()) return false;
    if (written && !m.writable()) return error = EPERM, false;
    address = m.to;
    if (address >= end) error = 0;
    return error != 0;
  });
  return error;
}

}  // namespace sdma::emulator
