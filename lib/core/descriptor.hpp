// SPDX-License-Identifier: MIT
#pragma once
// A descriptor that is closed with its owner.
//
//   Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!file) ...                                       // errno says why
//   ::read(file.get(), ...);
//
// Plain value; one thread at a time. Internal. No errors.
#include "sdma/core/standard.hpp"

#include <unistd.h>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  /// The caller closes it.
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

}}}  // namespace sdma::v0_3::detail
