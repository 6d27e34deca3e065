// SPDX-License-Identifier: MIT
#pragma once
// Which version of sdma this is. The version of the headers is a constant. A function returns the version of the
// compiled library, because a program may be built with the headers of one version and run with the library of another.
//
//   if (runtime_version() != kVersion.string) warn("headers and library differ");
//
// These are constants; any thread may read them. No errors.
#include "sdma/core/standard.hpp"

#include <string_view>

namespace sdma::inline v0 {

/// The version of a release, by the rules of semantic versioning.
struct Version {
  unsigned major{}, minor{}, patch{};  ///< of "major.minor.patch"
  std::string_view string{};           ///< the same, "major.minor.patch"
};

/// The version of these headers.
inline constexpr Version kVersion{.major = 0, .minor = 1, .patch = 0, .string = "0.1.0"};

/// The version of the sdma-runtime library that the program runs with. Defined in the library, not in this header.
std::string_view runtime_version() noexcept;

}  // namespace sdma::inline v0
