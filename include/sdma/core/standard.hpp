// SPDX-License-Identifier: MIT
#pragma once
// The oldest C++ standard with which these headers compile, and the byte order that they need: engines read
// little-endian dwords, and packets are stored as the host stores its words. Every public header includes this one
// first, so a compiler with an older standard prints one clear error instead of many.
//
//   $ g++ -std=c++17 -c x.cpp
//   error: #error "sdma needs C++20: compile with -std=c++20 or later (MSVC: /std:c++20)"
//
// Preprocessor only: no names, no state.

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "sdma needs C++20: compile with -std=c++20 or later (MSVC: /std:c++20)"
// A missing file ends the compilation; #error alone does not.
#include <sdma needs C++20>
#endif
#ifdef __BYTE_ORDER__
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "sdma needs a little-endian host: engines read little-endian dwords");
#endif
