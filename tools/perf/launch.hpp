// SPDX-License-Identifier: MIT
#pragma once
// The ranks of a benchmark: processes that a launcher has started, or that this program starts itself.
//
//   if (const auto at = launched(); *at) ended = perform_launched(request, **at);    // sdma/schedule/launcher.hpp
//   else code = perform_in_ranks(settings);                                          // --ranks: a fork for each
//
// Launched ranks pass bytes over MPI if the launcher is one of MPI and libsdma-mpi is there, and otherwise over sockets
// (sdma/schedule/meet.hpp), as with --meet.
//
// One thread, before a device is open. Errors: reported by rank 0, in one sentence for all ranks; but a rank that
// cannot reach the others reports its own.
#include "benchmark.hpp"
#include "request.hpp"
#include "sdma/schedule/launcher.hpp"

#include <optional>

namespace collectives::perf {

/// One of the processes that a launcher has started.
struct LaunchedEnd : Ended {
  bool lost = false;  ///< it has not met the others, so no other rank can report its code
};
LaunchedEnd perform_launched(const Request&, const sdma::Launched&);

/// Starts the ranks here. Returns the exit code.
int perform_in_ranks(const Settings&);

/// Asks in a process of its own: NVIDIA's driver cannot be used in the child of a process that has asked it.
std::optional<sdma::DeviceKind> hardware_before_a_fork();

}  // namespace collectives::perf
