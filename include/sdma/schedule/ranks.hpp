// SPDX-License-Identifier: MIT
#pragma once
// Starts the ranks of a schedule (BindOptions::ranks): a fork of this process for each, with sockets between them.
//
//   auto all = in_ranks(4, patience, [&](std::uint32_t rank, Exchange& e) { return text_of(rank, e); });
//   for (const auto& r : *all) puts(r.answer ? r.answer->c_str() : r.end.c_str());
//
// Ranks that have ended without an answer come first, and then the others in the order in which they ended: so what
// went wrong first comes before what followed from it. No rank outlives this process.
//
// Call it with one thread and without an open device. `patience`: how long the others may need after the first rank has
// ended; then they are killed. Until then `work` is to end by itself, as everything does that takes a Deadline.
// `proceed`: asked in this process; when it returns false, every rank gets SIGINT, and `patience` begins. A rank in
// which keep_what_is_known (core/interrupt.hpp) has been called then has an answer. Errors: no descriptor or process
// is left.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/transport.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sdma::inline v0 {

/// How the process of a rank has ended.
struct RankEnd {
  std::uint32_t rank{};                 ///< which one
  std::optional<std::string> answer{};  ///< what `work` has returned
  std::string end{};  ///< without an answer: "rank 1: its process 4711 was killed by signal 9 (Killed)"
};
/// Calls `work` in a process for each rank, and returns when all have ended.
Result<std::vector<RankEnd>, Diagnostic> in_ranks(std::uint32_t ranks, std::chrono::nanoseconds patience,
                                                  const std::function<std::string(std::uint32_t, Exchange&)>& work,
                                                  const std::function<bool()>& proceed = {});
/// The same, with more sockets: for a Transport between ranks that are nodes (BindOptions::ranks_per_node).
Result<std::vector<RankEnd>, Diagnostic> in_ranks(
    std::uint32_t ranks, std::chrono::nanoseconds patience,
    const std::function<std::string(std::uint32_t, Exchange&, Transport&)>& work,
    const std::function<bool()>& proceed = {});

}  // namespace sdma::inline v0
