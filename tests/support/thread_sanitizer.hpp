// SPDX-License-Identifier: MIT
#pragma once
// Is this a build with the thread sanitizer? It stops at every data race, also at those that a test makes on purpose.

namespace sdma::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace sdma::test
