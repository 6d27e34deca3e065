// SPDX-License-Identifier: MIT
// Descriptors of SMI events, without events: those of a fault are in gem_fault.cpp. Part of the program of gem.cpp.
#include "gem.hpp"

#include <poll.h>
#include <sys/wait.h>

using namespace gem;

TEST_CASE("a monitor never blocks, and takes a mask of eight bytes") {
  kfd::SmiEvents a{.gpu_id = 99, .fd = 0};
  CHECK(call(client().kfd, Nr::smi_events, a) == EINVAL);
  const int fd = monitor(0, 1);
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  CHECK(::poll(&p, 1, 0) == 0);
  CHECK(events(fd).empty());
  const std::uint64_t mask[2]{1, 2};
  CHECK(::write(fd, mask, sizeof mask) == 8);  // the rest is not read
  CHECK(::write(fd, mask, 7) == -1);
  CHECK(errno == EFAULT);
  CHECK(::write(fd, reinterpret_cast<void*>(reserve(4096)), 8) == -1);
  CHECK(errno == EFAULT);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
  // A dup is the same monitor; another pipe is not one.
  const int dup = ::dup(fd);
  CHECK(::write(dup, mask, 8) == 8);
  int ends[2]{};
  REQUIRE(::pipe(ends) == 0);
  CHECK(::write(ends[0], mask, 8) == -1);
  CHECK(errno == EBADF);
  for (const int d : {fd, dup, ends[0], ends[1]}) ::close(d);
  CHECK(::write(fd, mask, 8) == -1);
  CHECK(errno == EBADF);
}
