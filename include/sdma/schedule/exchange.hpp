// SPDX-License-Identifier: MIT
#pragma once
// How the processes that bind one schedule together pass each other the handles of their memory (BindOptions::ranks).
//
//   FolderExchange exchange("/tmp/run7", rank);                         // every rank sees the same, empty folder
//   auto bound = bind(schedule, device, {.rank = rank, .ranks = 8, .exchange = &exchange});
//
//   publish(mine)       this rank's bytes are for all others
//   receive(r)          the bytes of rank r; waits for them
//
//   bind: publish, receive each other rank        then memory is shared, and bind calls the exchange no more
//
// `SocketExchange` has a connected stream socket to each other rank, as a program has that starts the ranks itself
// (ranks.hpp); it may be used again, by a program or another bind. A program with MPI writes a class of its own, as
// collective_perf does (tools/perf/mpi.cpp).
//
// One thread per object. Errors: a Diagnostic names the rank and says why its bytes do not come: it has ended, or the
// deadline has passed.
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sdma::inline v0 {

/// How a rank gives its bytes to the others, and gets theirs.
class Exchange {
 public:
  virtual ~Exchange();
  /// Gives this rank's bytes to all others, before it receives theirs. FolderExchange: at most once.
  virtual Result<void, Diagnostic> publish(std::span<const std::byte>, Deadline) = 0;
  /// The bytes that this rank has published. Never called for one's own rank.
  virtual Result<std::vector<std::byte>, Diagnostic> receive(std::uint32_t rank, Deadline) = 0;

 protected:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
};

/// One file per rank, in a folder that exists and holds no files of an earlier run.
class FolderExchange final : public Exchange {
 public:
  FolderExchange(std::string folder, std::uint32_t rank) : folder_(std::move(folder)), rank_(rank) {}
  Result<void, Diagnostic> publish(std::span<const std::byte>, Deadline) override;
  Result<std::vector<std::byte>, Diagnostic> receive(std::uint32_t rank, Deadline) override;

 private:
  std::string path(std::uint32_t rank) const { return folder_ + "/rank" + std::to_string(rank); }
  std::string folder_;
  std::uint32_t rank_;
};

/// A connected stream socket per rank; the entry of this rank is -1. The caller keeps the descriptors open, and closes
/// the other ends in this process, so that the end of a rank closes its sockets.
class SocketExchange final : public Exchange {
 public:
  explicit SocketExchange(std::vector<int> sockets) : came_(sockets.size()), sockets_(std::move(sockets)) {}
  Result<void, Diagnostic> publish(std::span<const std::byte>, Deadline) override;
  Result<std::vector<std::byte>, Diagnostic> receive(std::uint32_t rank, Deadline) override;

 private:
  std::vector<std::deque<std::vector<std::byte>>> came_;  ///< from each rank: what it has published, then the next
  SocketTransport sockets_;
};

}  // namespace sdma::inline v0
