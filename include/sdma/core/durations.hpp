// SPDX-License-Identifier: MIT
#pragma once
// std::chrono's durations and steady clock, without its calendars, time zones and streams.
//
//   #include "sdma/core/durations.hpp"          // in place of <chrono>
//   std::chrono::milliseconds patience{200};    // std::chrono_literals is there too
//
// In C++20, <chrono> costs a quarter of the compile time of a header that waits. The <mutex> of libstdc++ needs
// durations and clocks, and takes them from a smaller header of its own. That is not promised for later versions, so
// they get <chrono>. No state, no errors.
#include "sdma/core/standard.hpp"

#include <cstdint>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE <= 14
#include <mutex>
#else
#include <chrono>
#endif
