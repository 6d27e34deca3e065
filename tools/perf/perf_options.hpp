// SPDX-License-Identifier: MIT
#pragma once
// The options of `sdma perf`: declared here, so that a test reads a line of words as the verb does.
//
//   auto request = std::make_shared<collectives::perf::Request>();
//   const auto complete = add_perf_options(verb, *request);
//   action = [=] { complete(); ... };                            what is known once all words are read
//
// One thread. Errors: usage errors of the parser.
#include "request.hpp"
#include "verb.hpp"

namespace sdma::tool {

std::function<void()> add_perf_options(VerbOptions&, collectives::perf::Request&);

}  // namespace sdma::tool
