// SPDX-License-Identifier: MIT
// Interposes process_vm_readv and process_vm_writev: memory of a driver does not answer them. The kernel finds no pages
// for a mapping of a device, and a debugger that works here must also work there. /proc/PID/mem answers.
//
// Only ranges of the other process are examined, as its /proc/PID/maps lists them at that moment.
#include "../../core/descriptor.hpp"
#include "../../core/maps.hpp"
#include "../real.hpp"
#include "front.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace {

/// Whether one of the ranges overlaps a mapping of the node's memory in a process.
bool of_driver(pid_t pid, const iovec* ranges, unsigned long count) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/maps", pid);
  const sdma::detail::Descriptor maps(SDMA_REAL(open)(path, O_RDONLY | O_CLOEXEC));
  bool found = false;
  sdma::detail::each_mapping(maps.get(), [&](const sdma::detail::MapsLine& m) {
    for (unsigned long i = 0; i < count && m.path.starts_with("/memfd:sdma-"); ++i) {
      const auto at = reinterpret_cast<std::uint64_t>(ranges[i].iov_base);
      found = found || (at < m.to && at + ranges[i].iov_len > m.from);
    }
    return !found;
  });
  return found;
}

}  // namespace

#define SDMA_REMOTE(name)                                                                                  \
  SDMA_FRONT ssize_t name(pid_t pid, const iovec* mine, unsigned long parts, const iovec* theirs,          \
                          unsigned long ranges, unsigned long flags) noexcept {                            \
    if (pid != ::getpid() && theirs && of_driver(pid, theirs, ranges)) return errno = EFAULT, ssize_t{-1}; \
    return SDMA_REAL(name)(pid, mine, parts, theirs, ranges, flags);                                       \
  }
SDMA_REMOTE(process_vm_readv)
SDMA_REMOTE(process_vm_writev)
