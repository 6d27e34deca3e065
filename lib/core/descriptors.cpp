// SPDX-License-Identifier: MIT
#include "sdma/core/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <initializer_list>

namespace sdma::inline v0 {

void keep_standard_descriptors() noexcept {
  // open() returns the lowest free number, and the lower ones are taken by now.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace sdma::inline v0
