// SPDX-License-Identifier: MIT
#pragma once
// Ctrl-C in a program that works for a while and then prints what it knows.
//
//   keep_what_is_known({SIGINT, SIGTERM});
//   while (interrupted == 0 && measure_next()) {}
//   print_results();
//   return interrupted != 0 ? 128 + interrupted : 0;      // the code that a shell reports
//
// Per process; a child after fork() has a copy of both. A shell ignores SIGINT in the commands of a script that it runs
// in the background: they are interrupted nevertheless. No errors.
#include "sdma/core/standard.hpp"

#include <csignal>
#include <initializer_list>

namespace sdma::inline v0 {

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

}  // namespace sdma::inline v0
