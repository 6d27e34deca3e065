// SPDX-License-Identifier: MIT
// A client of the compiled library.
#include "sdma/core/version.hpp"

#include <cstdio>

int main() {
  const auto version = sdma::version().string;
  std::printf("sdma-runtime %.*s\n", static_cast<int>(version.size()), version.data());
  return version == sdma::kVersion.string && version == SDMA_EXPECTED_VERSION ? 0 : 1;
}
