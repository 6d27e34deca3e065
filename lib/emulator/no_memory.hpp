// SPDX-License-Identifier: MIT
#pragma once
// Exceptions end at the boundary to the program, which is written in C: a call without memory fails with ENOMEM.
//
//   return errno_of([&] { return handler(args); });          // 0 or an errno
//   return guarded(-1, [&] { return open_entry(path); });    // errno as for the C library's functions
//
// `fn` must have changed nothing when it throws: allocate first, then commit. tests/emulator/no_memory.cpp lets each
// allocation of each call fail in turn.
#include <cerrno>
#include <exception>

namespace sdma::emulator {

template <class R, class Fn> R guarded(R failed, Fn fn) {
  try {
    return fn();
  } catch (const std::exception&) {  // std::bad_alloc; std::system_error if a thread cannot be started
    errno = ENOMEM;
    return failed;
  }
}
template <class Fn> int errno_of(Fn fn) { return guarded(ENOMEM, fn); }

}  // namespace sdma::emulator
