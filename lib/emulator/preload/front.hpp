// SPDX-License-Identifier: MIT
#pragma once
// Marks a function that interposes one of the C library. The library hides everything else; exports.map lists these.
//
//   SDMA_FRONT int dirfd(DIR* d) noexcept { ... }
//
// No exception leaves such a function: what allocates runs in `guarded` (../no_memory.hpp).
#define SDMA_FRONT extern "C" [[gnu::visibility("default")]]

// The function with 64 in its name, which is the same one on 64-bit machines, as it is in the C library: `front` is
// defined before, in the same source.
#define SDMA_SAME(name64, front)                                                                       \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpragmas\"")                       \
      _Pragma("GCC diagnostic ignored \"-Wunknown-warning-option\"")                                   \
          _Pragma("GCC diagnostic ignored \"-Wattribute-alias\"") extern "C" decltype(::name64) name64 \
      __attribute__((alias(#front), visibility("default")));                                           \
  _Pragma("GCC diagnostic pop")
