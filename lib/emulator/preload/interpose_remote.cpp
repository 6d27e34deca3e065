// SPDX-License-Identifier: MIT
// Interposes process_vm_readv and process_vm_writev: memory of a driver does not answer them. The kernel finds no pages
// for a mapping of a device, and a debugger that works here must also work there. /proc/PID/mem answers.
//
// Only ranges of the other process are examined, as its /proc/PID/maps lists them at that moment.
#include "../real.hpp"
#include "front.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

/// Whether one of the ranges overlaps a mapping of the node's memory in a process.
bool of_driver(pid_t pid, const iovec* ranges, unsigned long count) noexcept {
  char line[512];
  std::snprintf(line, sizeof line, "/proc/%d/maps", pid);
  auto* maps = SDMA_REAL(fopen)(line, "re");
  if (!maps) return false;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps)) {
    std::uint64_t from = 0, to = 0;
    if (!std::strstr(line, "/memfd:sdma-") || std::sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2) continue;
    for (unsigned long i = 0; i < count; ++i) {
      const auto at = reinterpret_cast<std::uint64_t>(ranges[i].iov_base);
      found = found || (at < to && at + ranges[i].iov_len > from);
    }
  }
  std::fclose(maps);
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
