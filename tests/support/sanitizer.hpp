// SPDX-License-Identifier: MIT
#pragma once
// Does this program run with a sanitizer? The thread sanitizer stops at every data race, also at those that a test
// makes on purpose. With any of them, a search plays a smaller sample, because each input takes ten times as long.
//
// The program is asked, not the compiler: GCC's objects of tests are linked with a library that has a sanitizer, too.

extern "C" {
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

namespace sdma::test {

inline bool address_sanitizer() noexcept { return __asan_init != nullptr; }
inline bool thread_sanitizer() noexcept { return __tsan_init != nullptr; }

/// How many inputs a search plays of the `all` that it plays without a sanitizer: an eighth, and at least two.
template <typename Number> Number tries(Number all) noexcept {
  if (!address_sanitizer() && !thread_sanitizer()) return all;
  return all / 8 > 2 ? all / 8 : 2;
}

}  // namespace sdma::test
