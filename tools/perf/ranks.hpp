// SPDX-License-Identifier: MIT
#pragma once
// The processes that time a collective together, one rank each: all run the same sweep, and exchange bytes at the same
// points of it. Rank 0 prints.
//
//   Ranks ranks{exchange, 1, 8};                  // over sockets (sdma/schedule/exchange.hpp) or MPI (mpi.hpp)
//   bind(schedule, device, bind_options(settings));
//   auto words = ranks.all("4096");               // those of each rank; also a barrier
//   return ranks.end(code, error);                // the exit code, the same in all; rank 0 reports the error
//
//   rank 0   all("a") ------ bind ------ all("b") ------ end(0)  ->  3, and prints "rank 1: ..."
//   rank 1   all("a") - error, end(3) ->  3                     what it publishes is its error
//
// A rank that ends with an error publishes that in place of the bytes of its next exchange. So each other rank gets it
// there, in `all` or in `bind`, and no rank waits for one that has ended. If several fail, all choose the same error:
// that of the lowest rank which does not only say that another one has failed.
//
// One thread. Errors: Diagnostics. After one, call only `end`.
#include "collectives/run.hpp"
#include "sdma/schedule/exchange.hpp"
#include "settings.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace collectives::perf {

/// When a rank started a round and saw its end, by the clock that all processes of a machine have in common.
struct Span {
  std::chrono::steady_clock::time_point begin{};  ///< the latest moment there is: it has started nothing
  std::chrono::steady_clock::time_point end{};
};

class Ranks final : public sdma::Exchange {
 public:
  Ranks(sdma::Exchange& between, std::uint32_t rank, std::uint32_t count, std::chrono::nanoseconds patience)
      : between_(between), rank_(rank), count_(count), patience_(patience), got_(count) {}

  std::uint32_t rank() const noexcept { return rank_; }
  std::uint32_t count() const noexcept { return count_; }

  sdma::Result<void, sdma::Diagnostic> publish(std::span<const std::byte>, sdma::Deadline) override;
  sdma::Result<std::vector<std::byte>, sdma::Diagnostic> receive(std::uint32_t rank, sdma::Deadline) override;

  /// The bytes of each rank, after all have given theirs.
  sdma::Result<std::vector<std::string>, sdma::Diagnostic> all(const std::string& mine);
  /// When the last rank came here, by the clock that all processes of a machine have in common. The ranks leave at
  /// different moments, because some of them sleep until the last has come.
  sdma::Result<std::chrono::steady_clock::time_point, sdma::Diagnostic> meet();
  /// Microseconds of each round: from the first rank's start to the last one's end.
  sdma::Result<std::vector<double>, sdma::Diagnostic> slowest(const std::vector<Span>& mine);
  /// The wrong bytes of all ranks, and the first of the lowest rank that has some.
  sdma::Result<void, sdma::Diagnostic> add(Check&);
  /// Are the ranks to measure the same? Also gives Settings::gpus those of all, if a rank has named its own.
  sdma::Result<void, sdma::Diagnostic> agree(Settings&, const std::string& command);

  /// Ends with this exit code or that of another rank that has failed. `error`: why this one has. The error to report,
  /// on rank 0.
  struct End {
    int code{};
    std::optional<sdma::Diagnostic> error{};
  };
  End end(int code, std::optional<sdma::Diagnostic> error);

 private:
  struct Failure {
    std::uint32_t rank{};
    int code{};
    int order{};  ///< 0: its own; 1: it follows from that of another rank; 2: none
    sdma::Diagnostic what{};
  };
  void drain();
  void take(std::uint32_t rank, sdma::Deadline);
  sdma::Diagnostic chosen() const;

  sdma::Exchange& between_;
  const std::uint32_t rank_, count_;
  const std::chrono::nanoseconds patience_;  ///< how long a rank may need for what comes between two exchanges
  bool exchanging_ = false;
  std::vector<std::optional<std::vector<std::byte>>> got_;  ///< of each other rank, in this exchange
  std::optional<Failure> failure_{};
};

/// How this process binds a schedule.
sdma::BindOptions bind_options(const Settings&);

}  // namespace collectives::perf
