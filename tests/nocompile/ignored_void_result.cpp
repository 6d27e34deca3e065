// SPDX-License-Identifier: MIT
// must not compile: nodiscard
// with: -Werror=unused-result
#include "sdma/core/result.hpp"

sdma::Result<void, sdma::Errc> close();
void wrong() { close(); }
