// SPDX-License-Identifier: MIT
#include "chooser.hpp"

namespace sdma::inline v0 {

Chooser::~Chooser() = default;
Seeded::~Seeded() = default;

}  // namespace sdma::inline v0
