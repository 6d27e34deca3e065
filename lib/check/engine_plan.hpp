// SPDX-License-Identifier: MIT
#pragma once
// Engines for all queues of a schedule, so that no poll holds an engine that it waits for (X2). Internal.
//
//   gpu0   to1 -> engine 14    to2 -> 12    ..        what does not wait keeps the engine that its peer recommends
//          ret1 -> engine 15   ret2 -> 13   ..        what waits gets one that nothing else uses
//
// engine_plans(m)              plans, the best first; none is checked
// with_engines(text, plan)     the text with these engines in the headers of its queues: a number, an expression in
//                              what the header has ("engine=9+i%7"), or a list ("let engines = [3, 5, 7]"); nullopt
//                              if none of them does
//
// A plan takes only engines that the node has and that are alive. It keeps directions apart as long as there are
// engines. Allocates. One thread at a time.
#include "model.hpp"
#include "source_lines.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {

std::vector<EnginePlan> engine_plans(const Model&);
std::optional<SourceLines> with_engines(const SourceLines&, const EnginePlan&);

}}}  // namespace sdma::v0_3::check_detail
