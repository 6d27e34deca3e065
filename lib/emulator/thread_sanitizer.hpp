// SPDX-License-Identifier: MIT
#pragma once
// Exempts the threads that act as the hardware from ThreadSanitizer, if the program is built with it. ThreadSanitizer
// follows the copies of such a thread, but not the packets, doorbells and signals that order them, so it would report
// each copy between buffers of the program as a data race.
//
//   exempt_this_thread();       // at the beginning of a thread that acts as the hardware
//
// The thread's accesses are then ignored; races between threads of the program are still reported. Does nothing in
// other programs. Any thread. No allocation.
#include <dlfcn.h>

namespace sdma::emulator {

inline void exempt_this_thread() noexcept {
  using Annotation = void (*)(const char* file, int line);
  for (const char* name : {"AnnotateIgnoreReadsBegin", "AnnotateIgnoreWritesBegin"})
    // Not __FILE__: in a build of groups, it is a path of the machine that compiled it.
    if (const auto begin = reinterpret_cast<Annotation>(::dlsym(RTLD_DEFAULT, name)))
      begin("thread_sanitizer.hpp", __LINE__);
}

}  // namespace sdma::emulator
