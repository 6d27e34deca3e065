// SPDX-License-Identifier: MIT
#pragma once
// A write that continues after short writes and signals. Internal.
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma::inline v0::detail {

/// Writes at the file's position, or at `at`. Returns 0 or an errno; after an error, some bytes may be in the file.
int write_all(int fd, std::string_view bytes, std::optional<std::uint64_t> at = {}) noexcept;

}  // namespace sdma::inline v0::detail
