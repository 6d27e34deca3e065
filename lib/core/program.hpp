// SPDX-License-Identifier: MIT
#pragma once
// What a program does before anything else: it keeps its standard descriptors, and what it knows when Ctrl-C comes.
//
//   int main() {
//     keep_standard_descriptors();                          // before anything is opened
//     keep_what_is_known({SIGINT, SIGTERM});
//     while (interrupted == 0 && measure_next()) {}
//     print_results();
//     return interrupted != 0 ? 128 + interrupted : 0;      // the code that a shell reports
//   }
//
// Per process; a child after fork() has a copy of `interrupted`. A shell ignores SIGINT in the commands of a script
// that it runs in the background: they are interrupted nevertheless. No errors: if /dev/null cannot be opened, nothing
// changes.
#include <fcntl.h>
#include <unistd.h>
#include <csignal>
#include <initializer_list>

namespace sdma { inline namespace v0_3 {

/// If a descriptor from 0 to 2 is closed, the next file that a program opens gets its number, and messages go to that
/// file. This opens a substitute for each: reads and writes of it fail with EBADF. Call it before other threads start.
inline void keep_standard_descriptors() noexcept {
  // open() returns the lowest free number, and the lower ones are taken by now.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// The number of the signal, once it has come; 0 before.
inline volatile std::sig_atomic_t interrupted = 0;

/// From now on, the first of these signals only sets `interrupted`. The second ends the program.
inline void keep_what_is_known(std::initializer_list<int> signals = {SIGINT}) noexcept {
  struct sigaction action {};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdisabled-macro-expansion"  // sa_handler is a macro of the C library
#endif
  action.sa_handler = [](int number) { interrupted = number; };
#ifdef __clang__
#pragma clang diagnostic pop
#endif
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int s : signals) ::sigaction(s, &action, nullptr);
}

}}  // namespace sdma::v0_3
