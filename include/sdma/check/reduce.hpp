// SPDX-License-Identifier: MIT
#pragma once
// Finds the smallest text of a schedule that still has a finding, and thus the part that causes the finding.
//
//   auto least = reduce_text(text, "ag.sdma", {.set = {{"N", "8"}}});
//   if (least) puts(least->text.c_str());
//
//   #  races in round 3                               sdma 1
//   param N = 8                                       gpus 1
//   ...                                               buffer gpu0.a bytes=4K
//   host main                        ---->            ...
//     repeat 140                                      host main
//       submit *                                        submit gpu0.q
//       wait host.done == 3*N*epoch                     wait host.done == 1
//
// reduce_text makes a text smaller in three ways: it removes lines, blocks or words; it replaces a block by the block's
// own lines; or it lowers a number of rounds or GPUs, or the value of a param. It checks each smaller text, and keeps
// it if the checker reports the same rule with the same severity, perhaps at another place. If the whole text submits
// its queues, so does the smallest: otherwise, the finding would rest on what other programs may do. The search ends
// when no single change keeps the finding, or after ReduceOptions::max_tries texts. It does not depend on a clock, so
// its answer is always the same. It first reduces the text as it is written, and then the text with its loops expanded;
// the answer is the shorter of the two, which has no comments and needs no settings.
//
// Cost: one check for each try. Allocates, and throws only what the allocator throws. There is no shared state; any
// thread may call it. Errors: those of the text; a text without a finding, or without the requested finding.
#include "sdma/check/check.hpp"

#include <functional>

namespace sdma { inline namespace v0_3 {

struct ReduceOptions {
  std::string rule{};            ///< the finding's rule; "": that of the first finding that is more than advice
  std::size_t max_tries = 5000;  ///< how many texts are checked
  /// Called before each of them, with the number of those before it; false ends the search as `max_tries` does.
  std::function<bool(std::size_t)> proceed{};
};

/// The smallest text, and what it was before.
struct ReducedText {
  std::string text{};          ///< the smallest one
  CheckedText checked{};       ///< it, with its findings
  Schedule original{};         ///< the schedule of the whole text
  std::string rule{};          ///< of the finding
  std::size_t lines_before{};  ///< of the whole text, without comments and empty lines
  std::size_t tries{};         ///< texts that were checked
  bool least = true;           ///< false: max_tries or `proceed` ended the search
};

/// `options`: how each text is checked, without a search for changes that fix it.
Result<ReducedText, std::vector<Diagnostic>> reduce_text(std::string_view text, std::string_view file,
                                                         const ParseOptions& = {}, const CheckOptions& options = {},
                                                         const ReduceOptions& = {});

}}  // namespace sdma::v0_3
