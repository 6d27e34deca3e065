// SPDX-License-Identifier: MIT
#pragma once
// Requests in simulated time: no engine runs, and a machine description gives the time of each group of packets.
//
//   auto t = simulated({.way = Way::b2b, .engines = 2, .blocks = 256, .bytes = 16 << 10}, GpuId{0}, *mi300x_machine());
//
// Where a lane has many groups (looped, batched), each submit copies the lane's first block again: the simulated time
// of a copy does not depend on which block it is. As on a device, the trigger of a prelaunched request follows its last
// doorbell at once.
//
// Deterministic; any thread. Absolute times are only as certain as the machine's parameters. Errors: there is no such
// GPU, and those of simulate. The GPU must have `engines` live engines.
#include "request.hpp"
#include "sdma/simulate/machine.hpp"

namespace collectives::kv {

sdma::Result<Times, std::vector<sdma::Diagnostic>> simulated(const Request&, sdma::GpuId,
                                                             const sdma::MachineDescription&);

}  // namespace collectives::kv
