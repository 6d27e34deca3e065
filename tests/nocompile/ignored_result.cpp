// SPDX-License-Identifier: MIT
// must not compile: nodiscard
// with: -Werror=unused-result
#include "sdma/core/result.hpp"

sdma::Result<int> half(int n);
void wrong() { half(2); }
