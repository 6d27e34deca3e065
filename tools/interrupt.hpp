// SPDX-License-Identifier: MIT
#pragma once
// Ctrl-C in a verb that works for a while and then says what it knows.
//
//   keep_what_is_known();
//   while (interrupted == 0 && ...) ...
//
// Per process. A signal handler only stores to `interrupted`. No errors.
#include <csignal>

namespace sdma::tool {

/// 1 after Ctrl-C.
inline volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C sets `interrupted`, and the second ends the program.
inline void keep_what_is_known() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace sdma::tool
