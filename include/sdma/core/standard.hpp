// SPDX-License-Identifier: MIT
#pragma once
// The oldest C++ standard with which these headers compile. Every public header includes this one before anything else,
// so a compiler with an older standard prints one clear error instead of many.
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
