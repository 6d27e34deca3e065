// SPDX-License-Identifier: MIT
#include "sdma/core/version.hpp"

#include "support/catch.hpp"

#include <string>

TEST_CASE("the version's numbers and its text agree") {
  const auto& v = sdma::kVersion;
  CHECK(v.string == std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch));
}

TEST_CASE("headers and library of one build have one version") {
  CHECK(sdma::runtime_version() == sdma::kVersion.string);
}
