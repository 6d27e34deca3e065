// SPDX-License-Identifier: MIT
#pragma once
// The end of a child that a test has forked. What the child's code throws, such as a failed REQUIRE, ends the child
// too: it does not go on in the copy of the test that the child also is.
//
//   if (fork() == 0) end_child([&] { return body(); });      // its result is the exit code; 127: it has thrown
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>

template <class F> [[noreturn]] void end_child(F body) noexcept {
  try {
    ::_exit(body());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "process %d of the test: %s\n", ::getpid(), e.what());
  } catch (...) {  // Catch2 has described the REQUIRE already
    std::cout << std::flush;
    std::fprintf(stderr, "process %d of the test: a REQUIRE has failed\n", ::getpid());
  }
  ::_exit(127);
}
