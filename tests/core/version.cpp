// SPDX-License-Identifier: MIT
#include "sdma/core/version.hpp"

#include "support/catch.hpp"

#include <string>

using sdma::Version;

TEST_CASE("the version's numbers and its text agree") {
  const auto& v = sdma::kVersion;
  CHECK(v.string == std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch));
  CHECK(v.string == SDMA_VERSION_STRING);
  CHECK(v.major * 10000 + v.minor * 100 + v.patch == SDMA_VERSION);
}

TEST_CASE("the preprocessor can compare versions") {
#if SDMA_VERSION >= 300 && SDMA_VERSION < 1000000
  SUCCEED();
#else
  FAIL("SDMA_VERSION is " << SDMA_VERSION);
#endif
}

TEST_CASE("headers and library of one build have one version") {
  CHECK(sdma::version() == sdma::kVersion);
  CHECK(sdma::version().string == sdma::kVersion.string);
  CHECK(sdma::version().compatible_with(sdma::kVersion));
}

TEST_CASE("versions are ordered by their numbers, major first") {
  CHECK(Version{0, 2, 0} < Version{0, 2, 1});
  CHECK(Version{0, 2, 9} < Version{0, 10, 0});
  CHECK(Version{0, 99, 99} < Version{1, 0, 0});
  CHECK(Version{1, 2, 3} == Version{1, 2, 3, "1.2.3"});
}

TEST_CASE("a library is compatible with headers of its layouts that are not newer") {
  const auto of = [](unsigned minor, unsigned patch, unsigned abi) {
    return Version{.major = 0, .minor = minor, .patch = patch, .string = {}, .abi = abi};
  };
  CHECK(of(3, 1, 300).compatible_with(of(3, 0, 300)));
  CHECK_FALSE(of(3, 0, 300).compatible_with(of(3, 1, 300)));  // the program may need what 0.3.1 mended
  CHECK(of(4, 0, 300).compatible_with(of(3, 2, 300)));        // a minor version that moved nothing
  CHECK_FALSE(of(4, 0, 400).compatible_with(of(3, 2, 300)));  // one that moved the inline namespace
  CHECK_FALSE(of(4, 0, 400).compatible_with(of(4, 0, 300)));  // a prerelease from before the move
  CHECK_FALSE(Version{0, 3, 0}.compatible_with({0, 3, 0}));   // of neither are the layouts known
  CHECK_FALSE(sdma::kVersion.compatible_with({0, 3, 0}));
}
