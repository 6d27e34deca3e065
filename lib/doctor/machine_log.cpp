// SPDX-License-Identifier: MIT
// Reads the log of this machine's kernel.
#include "sdma/doctor/read.hpp"

#include <fmt/format.h>

#include <sys/klog.h>

#include <cerrno>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// Actions of klogctl, of which the C library has no names.
constexpr int kReadAll = 3, kBufferSize = 10;

Diagnostic unreadable(int error) {
  return {.where = "the kernel's log",
          .message = fmt::format("cannot be read: {}", std::strerror(error)),
          .hint = "run as root, or permit it: sysctl kernel.dmesg_restrict=0"};
}

}  // namespace

Result<std::string, Diagnostic> kernel_log() {
  const int size = ::klogctl(kBufferSize, nullptr, 0);
  if (size < 0) return unreadable(errno);
  std::string text(static_cast<std::size_t>(size), '\0');
  const int got = ::klogctl(kReadAll, text.data(), size);
  if (got < 0) return unreadable(errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}}}  // namespace sdma::v0_3::doctor
