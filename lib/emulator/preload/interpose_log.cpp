// SPDX-License-Identifier: MIT
// Interposes klogctl: the kernel's log is that of the node, for root. The
// machine's own is not shown, because its GPUs are not those of the node.
#include "../no_memory.hpp"
#include "../node/tree/processes.hpp"
#include "front.hpp"

#include <sys/klog.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace {

/// Actions, of which the C library has no names. Those that change the log are not permitted here.
constexpr int kReadAll = 3, kUnread = 9, kBufferSize = 10;

int read_log(int action, char* buffer, int bytes) {
  const auto text = sdma::emulator::kernel_log();
  if (action != kReadAll) return static_cast<int>(text.size()) + 1;  // never 0, as in the kernel
  if (!buffer || bytes < 0) return errno = EINVAL, -1;
  const auto n = std::min(text.size(), static_cast<std::size_t>(bytes));
  std::memcpy(buffer, text.data() + (text.size() - n), n);  // the newest
  return static_cast<int>(n);
}

}  // namespace

SDMA_FRONT int klogctl(int action, char* buffer, int bytes) noexcept {
  const bool reads = action == kReadAll || action == kUnread || action == kBufferSize;
  if (!reads || ::geteuid() != 0) return errno = EPERM, -1;
  return sdma::emulator::guarded(-1, [&] { return read_log(action, buffer, bytes); });
}
