// SPDX-License-Identifier: MIT
#pragma once
// Passes bytes between the processes that mpirun has started. The option mpi of the build provides it.
//
//   if (const auto at = launched(); at.count > 1) {
//     if (!MpiExchange::kBuilt) ...                  // "built without MPI"
//     MpiExchange exchange;                          // MPI_Init
//     bind(schedule, device, {.rank = at.rank, .ranks = at.count, .exchange = &exchange});
//   }                                                // MPI_Finalize
//
// Publishing is an MPI_Iallgather of the sizes and an MPI_Iallgatherv of the bytes: all ranks exchange equally often.
// Both are polled until the deadline, with the naps of other waits. It may be used any number of times.
//
// One object per process, on one thread. Errors: a Diagnostic when the others do not call it before the deadline; then
// the destructor ends all ranks, because MPI cannot take its call back. If a rank dies, mpirun ends the others.
#include "sdma/schedule/exchange.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace collectives::perf {

/// What mpirun has told this process in its environment; one rank without it.
struct Launched {
  std::uint32_t rank = 0, count = 1;
};
Launched launched();

class MpiExchange final : public sdma::Exchange {
 public:
  static const bool kBuilt;
  MpiExchange();
  ~MpiExchange() override;
  /// May a second thread call MPI, as that of a MpiTransport does?
  bool threads() const noexcept { return threads_; }
  sdma::Result<void, sdma::Diagnostic> publish(std::span<const std::byte>, sdma::Deadline) override;
  sdma::Result<std::vector<std::byte>, sdma::Diagnostic> receive(std::uint32_t rank, sdma::Deadline) override;

 private:
  std::vector<std::byte> all_{};
  std::vector<int> bytes_{}, begins_{};  ///< of each rank in `all_`
  bool broken_ = false, threads_ = false;
};

/// Point to point between nodes: MPI_Isend, and MPI_Improbe with MPI_Mrecv, in a communicator of its own. Create it
/// after the MpiExchange, and destroy it before. Its calls and those of the exchange do not overlap, so that MPI
/// needs to be no more than MPI_THREAD_SERIALIZED. No rank has `ended`: if one dies, mpirun ends all.
class MpiTransport final : public sdma::Transport {
 public:
  MpiTransport();
  ~MpiTransport() override;
  void send(std::uint32_t rank, std::vector<std::byte> message) override;
  std::optional<Message> receive() override;
  std::uint64_t unsent() const noexcept override;
  bool ended(std::uint32_t) const noexcept override { return false; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collectives::perf
