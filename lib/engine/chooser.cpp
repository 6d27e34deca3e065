// SPDX-License-Identifier: MIT
#include "chooser.hpp"

namespace sdma { inline namespace v0_3 {

Chooser::~Chooser() = default;
Seeded::~Seeded() = default;

}}  // namespace sdma::v0_3
