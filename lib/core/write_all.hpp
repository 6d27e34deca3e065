// SPDX-License-Identifier: MIT
#pragma once
// A write that continues after short writes and signals. Internal.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Writes at the file's position, or at `at`. Returns 0 or an errno; after an error, some bytes may be in the file.
inline int write_all(int fd, std::string_view bytes, std::optional<std::uint64_t> at = {}) noexcept {
  while (!bytes.empty()) {
    const auto n = at ? ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(*at))
                      : ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;  // 0: a file system that neither writes nor says why
    bytes.remove_prefix(static_cast<std::size_t>(n));
    if (at) *at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

}}}  // namespace sdma::v0_3::detail
