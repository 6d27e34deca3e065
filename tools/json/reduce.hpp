// SPDX-License-Identifier: MIT
#pragma once
// The answer of `sdma reduce`.
//
//   const Json j = json::of(*reduce_text(text, "ag.sdma"), "ag.sdma");
//   j["text"], j["after"]["packets"]
#include "json.hpp"
#include "sdma/check/reduce.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sdma::json {

/// How many lines, queues and so on there were, and are left: {"lines", {64, 17}}. Packets are those of one submit.
std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> sizes(const ReducedText&);
Json of(const ReducedText&, const std::string& file);

}  // namespace sdma::json
