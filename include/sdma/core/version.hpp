// SPDX-License-Identifier: MIT
#pragma once
// Which version of sdma this is: of the headers, as macros and as a constant, and of the compiled library, as a
// function. They can differ, because a program may be built with the headers of one version and run with the
// library of another.
//
//   #if SDMA_VERSION >= 300                                          // 0.3.0: before the compiler reads what follows
//   #endif
//   static_assert(kVersion >= Version{0, 3, 0});                     // the same, in C++
//   if (!version().compatible_with(kVersion)) warn("headers and library differ");
//
// docs/stability.md says what a version promises. These are constants; any thread may read them. No errors.
#include "sdma/core/standard.hpp"

#include <compare>
#include <string_view>

#define SDMA_VERSION_MAJOR 0         ///< of these headers; a new one may break any interface
#define SDMA_VERSION_MINOR 3         ///< before 1.0.0, a new one may break what docs/stability.md does not promise
#define SDMA_VERSION_PATCH 0         ///< a new one only fixes errors
#define SDMA_VERSION_STRING "0.3.0"  ///< the same three, as text
/// The same as one number, 10000 * major + 100 * minor + patch, for `#if SDMA_VERSION >= 300`.
#define SDMA_VERSION (SDMA_VERSION_MAJOR * 10000 + SDMA_VERSION_MINOR * 100 + SDMA_VERSION_PATCH)
/// The version that last changed the layout or the meaning of a public type, as such a number. The inline namespace,
/// the SONAMEs and the symbol versions of libsdma-runtime and libsdma-device say the same: v0_3, .so.0.3, SDMA_0.3.
#define SDMA_ABI 300

namespace sdma { inline namespace v0_3 {

/// Versions are ordered by their numbers.
struct Version {
  unsigned major{}, minor{}, patch{};  ///< of "major.minor.patch"
  std::string_view string{};  ///< the same, "major.minor.patch", or empty in a version that a program writes itself
  unsigned abi{};             ///< its SDMA_ABI; 0: not known, as in a version that a program writes itself

  constexpr auto operator<=>(const Version& o) const noexcept {
    if (major != o.major) return major <=> o.major;
    if (minor != o.minor) return minor <=> o.minor;
    return patch <=> o.patch;
  }
  constexpr bool operator==(const Version& o) const noexcept {
    return major == o.major && minor == o.minor && patch == o.patch;
  }

  /// May a program that was compiled with the headers `o` run with a library of this version? Yes, if the library is
  /// not older, and both have the same layouts: the same `abi`. A version whose `abi` is not known is compatible with
  /// none, because nothing says what its layouts are.
  constexpr bool compatible_with(const Version& o) const noexcept { return abi != 0 && abi == o.abi && *this >= o; }
};

/// The version of these headers.
inline constexpr Version kVersion{.major = SDMA_VERSION_MAJOR,
                                  .minor = SDMA_VERSION_MINOR,
                                  .patch = SDMA_VERSION_PATCH,
                                  .string = SDMA_VERSION_STRING,
                                  .abi = SDMA_ABI};

/// The version of the sdma-runtime library that the program runs with. Defined in the library, not in this header.
Version version() noexcept;

}}  // namespace sdma::v0_3
