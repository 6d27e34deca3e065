// SPDX-License-Identifier: MIT
#include "core/program.hpp"

#include "support/catch.hpp"
#include "support/folder.hpp"

#include <fcntl.h>
#include <cerrno>

using namespace sdma;

namespace {

TEST_CASE("a file never becomes a standard descriptor that was closed") {
  const test::Folder folder;
  const auto path = folder / "a";
  const auto opens_above = [&](bool keep) {
    return test::elsewhere([&] {
      for (const int fd : {0, 1, 2}) ::close(fd);
      if (keep) keep_standard_descriptors();
      return ::open(path.c_str(), O_WRONLY | O_CREAT, 0666) > 2;
    });
  };
  CHECK_FALSE(opens_above(false));
  CHECK(opens_above(true));
}

TEST_CASE("what replaces it refuses what it was closed for") {
  CHECK(test::elsewhere([] {
    for (const int fd : {0, 1, 2}) ::close(fd);
    keep_standard_descriptors();
    char c = 0;
    return ::read(0, &c, 1) < 0 && errno == EBADF && ::write(1, &c, 1) < 0 && errno == EBADF && ::write(2, &c, 1) < 0 &&
           errno == EBADF;
  }));
}

TEST_CASE("what is open stays as it is") {
  const test::Folder folder;
  const auto path = folder / "a";
  CHECK(test::elsewhere([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
    ::dup2(fd, 1);
    keep_standard_descriptors();
    return ::write(1, "x", 1) == 1;
  }));
  CHECK(test::content(path) == "x");
}

}  // namespace
