// SPDX-License-Identifier: MIT
#pragma once
// The memory of a schedule whose ranks are processes: each allocates what is its own and opens the rest. Internal.
//
//   errors = join(impl, options, gpus);      // fills buffers, signals, words_at, memory and team of the Bound
//
//   pieces   a page of words per rank (team.hpp) | each buffer | the signals of each place, one per cache line
//
// All ranks list the same pieces in the same order, so a rank publishes only the handles of its own. Signals of a place
// are one piece, because each piece needs a descriptor. Pieces of other nodes are not opened: what is in them gets an
// address for the network's queues only, and of their pages of words there are copies. The last act is a barrier: no
// rank returns before all have opened everything.
//
// Errors: those of the device and of the exchange; a rank binds another schedule, or as another number of ranks.
#include "bound.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// The memory that a buffer needs. `gpus`: the device's GPU for each of the schedule's.
MemoryRequest request_for(const Schedule::Buffer&, const std::vector<GpuId>& gpus);

/// Why no process could be this rank; nothing for one rank.
std::vector<Diagnostic> wrong_ranks(const Schedule&, const BindOptions&);

std::vector<Diagnostic> join(Bound::Impl&, const BindOptions&, const std::vector<GpuId>& gpus);

}}}  // namespace sdma::v0_3::detail
