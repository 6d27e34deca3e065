// SPDX-License-Identifier: MIT
#include "sdma/core/version.hpp"

namespace sdma { inline namespace v0_3 {

// The build also has the version, for the names of the library and the package: the two must be equal.
#ifdef SDMA_PROJECT_VERSION
static_assert(kVersion.string == SDMA_PROJECT_VERSION);
#endif

Version version() noexcept { return kVersion; }

}}  // namespace sdma::v0_3
