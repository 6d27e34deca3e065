// SPDX-License-Identifier: MIT
#pragma once
// The address of a Unix socket whose name is not that of a file: it exists only as long as the socket.
//
//   const AbstractAddress at("sdma-contact");
//   ::bind(fd, at.get(), at.bytes());
//
// A longer name than fits is cut. Plain value that allocates nothing. Internal. No errors.
#include "sdma/core/standard.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

class AbstractAddress {
 public:
  explicit AbstractAddress(std::string_view name) noexcept {
    un_.sun_family = AF_UNIX;
    const auto n = std::min(name.size(), sizeof un_.sun_path - 1);
    std::copy_n(name.data(), n, un_.sun_path + 1);  // after a zero
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&un_); }
  socklen_t bytes() const noexcept { return bytes_; }

 private:
  sockaddr_un un_{};
  socklen_t bytes_{};
};

}}}  // namespace sdma::v0_3::detail
