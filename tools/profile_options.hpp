// SPDX-License-Identifier: MIT
#pragma once
// Shared by check and reduce: the ordering rules that a schedule may rely on.
//
//   const auto assumed = add_profile(verb, o->profile);        --profile=rocr --assume fence=full
//   action = [o, assumed] { assumed(); ... };
#include "sdma/check/check.hpp"

#include <functional>

namespace sdma::tool {

class VerbOptions;

/// The function that it returns adds what --assume names, when the verb runs: a --profile may follow it.
std::function<void()> add_profile(VerbOptions&, Profile&);

}  // namespace sdma::tool
