// SPDX-License-Identifier: MIT
#pragma once
// The ranks of a benchmark: processes that a launcher has started, or that this program starts itself.
//
//   const auto at = launched();                               // what the launcher says in the environment
//   if (at->count > 1) ended = perform_launched(request, *at);
//   else code = perform_in_ranks(settings);                   // --ranks: a fork of this process for each
//
// One thread, before a device is open. Errors: reported by rank 0, in one sentence for all ranks; but a rank that
// cannot reach the others reports its own.
#include "benchmark.hpp"
#include "request.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <optional>

namespace collectives::perf {

struct Launched {
  std::uint32_t rank = 0, count = 1;
};
/// One rank if there is no launcher. Errors: variables that contradict each other.
sdma::Result<Launched, sdma::Diagnostic> launched();

/// One of the processes that a launcher has started.
struct LaunchedEnd : Ended {
  bool lost = false;  ///< it has not met the others, so no other rank can report its code
};
LaunchedEnd perform_launched(const Request&, const Launched&);

/// Starts the ranks here. Returns the exit code.
int perform_in_ranks(const Settings&);

/// Asks in a process of its own: NVIDIA's driver cannot be used in the child of a process that has asked it.
std::optional<sdma::DeviceKind> hardware_before_a_fork();

}  // namespace collectives::perf
