// SPDX-License-Identifier: MIT
#include "driver.hpp"

#include <sys/ioctl.h>

#include <cerrno>

namespace sdma::inline v0::kfd {

int call(int fd, unsigned long request, void* args) noexcept {
  int status = 0;
  do {
    status = ::ioctl(fd, request, args);
  } while (status == -1 && (errno == EINTR || errno == EAGAIN));
  return status == -1 ? errno : 0;
}

}  // namespace sdma::inline v0::kfd
