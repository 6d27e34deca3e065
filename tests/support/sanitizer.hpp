// SPDX-License-Identifier: MIT
#pragma once
// Is this a build with a sanitizer? The thread sanitizer stops at every data race, also at those that a test makes on
// purpose. With any of them, a search plays a smaller sample, because each input takes some ten times as long.

namespace sdma::test {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true, kAddressSanitizer = false;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false, kAddressSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false, kAddressSanitizer = false;
#endif

/// How many inputs a search plays of the `all` that it plays without a sanitizer: an eighth, and at least two.
template <typename Number> constexpr Number tries(Number all) {
  if (!kThreadSanitizer && !kAddressSanitizer) return all;
  return all / 8 > 2 ? all / 8 : 2;
}

}  // namespace sdma::test
