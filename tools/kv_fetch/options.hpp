// SPDX-License-Identifier: MIT
#pragma once
// The command line of kv_fetch: its manual, and what the arguments ask for.
//
//   const auto o = kv::options(argc, argv);   // --help prints the manual and ends the program; an error ends it with 2
//
// Call it from the main thread, before others start.
#include "request.hpp"
#include "sdma/device/open.hpp"
#include "simulated_machine.hpp"

#include <optional>
#include <string>

namespace collectives::kv {

struct Options {
  std::vector<std::uint64_t> sizes{};  ///< bytes per block, ascending
  std::uint64_t blocks{}, pool{};      ///< per request, and in the pool
  std::uint64_t large{};  ///< bytes of the one copy that the conclusion compares with; 0: one size, no conclusion
  std::vector<std::uint32_t> engines{};
  std::uint32_t queues{};  ///< on each engine
  std::vector<Way> ways{};
  std::optional<double> kernel{};  ///< GB/s
  std::uint64_t rounds{}, warm{};
  sdma::GpuId gpu{};
  std::optional<sdma::DeviceKind> device{};  ///< none: simulate `machine`
  sdma::tool::SimulatedMachine machine{};    ///< eight MI300X, unless an option names another one
};

Options options(int argc, char** argv);

}  // namespace collectives::kv
