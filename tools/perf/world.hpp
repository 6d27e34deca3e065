// SPDX-License-Identifier: MIT
#pragma once
// The processes that a launcher has started, as one of them sees them: its rank, and how the ranks pass bytes to each
// other.
//
//   Ranks ranks(world->exchange(), world->rank(), world->count(), patience);
//
// launch.cpp has one over sockets; libsdma-mpi (mpi.cpp), a module that is loaded, has the one of MPI.
//
// One World per process, on one thread. Errors: those of its Exchange.
#include "sdma/schedule/exchange.hpp"

#include <cstdint>

namespace collectives::perf {

class World {
 public:
  virtual ~World() = default;
  virtual std::uint32_t rank() const noexcept = 0;
  virtual std::uint32_t count() const noexcept = 0;
  virtual sdma::Exchange& exchange() noexcept = 0;
  /// Between nodes; null if this World lets one thread of a process pass bytes.
  virtual sdma::Transport* transport() noexcept = 0;

 protected:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
};

/// The function that libsdma-mpi exports under this name.
using OpenWorld = World*();
inline constexpr char kOpenWorld[] = "sdma_open_mpi";

}  // namespace collectives::perf
