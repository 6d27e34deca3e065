// SPDX-License-Identifier: MIT
#pragma once
// The processes that bind one schedule together (BindOptions::ranks): how they pass each other the handles of their
// memory, how nodes pass each other bytes, and how to start them.
//
//   FolderExchange exchange("/tmp/run7", rank);                         // every rank sees the same, empty folder
//   auto bound = bind(schedule, device, {.rank = rank, .ranks = 8, .exchange = &exchange});
//
//   publish(mine)       this rank's bytes are for all others
//   receive(r)          the bytes of rank r; waits for them
//
//   bind: publish, receive each other rank        then memory is shared, and bind calls the exchange no more
//
// `SocketExchange` uses a connected stream socket to each other rank. A program that starts the ranks itself has these
// sockets (in_ranks); for ranks of a launcher, `meet` connects them (sdma/schedule/meet.hpp). The object may be used
// again, by the program or for another bind. A program with MPI implements its own class, as sdma perf does
// (tools/perf/mpi.cpp).
//
// One thread per object. Errors: a Diagnostic names the rank and says why its bytes do not come: it has ended, or the
// deadline has passed.
//
// The network between nodes: how ranks that share no memory pass each other bytes while a bound schedule runs.
//
//   SocketTransport network(sockets);
//   BindOptions o{.rank = rank, .ranks = 8, .exchange = &exchange, .ranks_per_node = {{4}}, .transport = &network};
//   auto bound = bind(schedule, device, o);
//
//   rank 1, node 0                                          rank 5, node 1
//   queue gpu1.out peer=gpu5 network=1
//     copy_linear    send(5, bytes)     ------------->      receive(): stores the bytes
//     fence          send(5, a word)    ------------->      receive(): sets the word, after the bytes
//
// A thread of the Bound executes the queues with network=1 (docs/nodes.md) and calls these functions. `SocketTransport`
// has a stream socket to each other rank: for processes of one machine, and for tests. Between machines, a program
// gives the Bound MPI, as sdma perf does (tools/perf/mpi.cpp).
//
// One thread at a time, and one Bound at a time. A message arrives whole, and messages from one rank to another arrive
// in the order in which they were sent. Nothing waits. No errors: a rank that no longer answers has `ended`.
//
// Starts the ranks of a schedule (BindOptions::ranks): a fork of this process for each, with sockets between them.
//
//   auto all = in_ranks(4, patience, [&](std::uint32_t rank, Exchange& e) { return text_of(rank, e); });
//   for (const auto& r : *all) puts(r.answer ? r.answer->c_str() : r.end.c_str());
//
// Ranks that have ended without an answer come first, and then the others in the order in which they ended, so the
// cause of a failure comes before its consequences. No rank outlives this process. What `work` throws ends its process
// with code 127, and goes to stderr.
//
// Call it with one thread and without an open device. `patience`: how long the others may need after the first rank has
// ended; then they get a second, and are killed. Until then, `work` should end by itself, which everything with a
// Deadline does. `proceed`: asked in this process; when it returns false, every rank gets SIGINT, and `patience`
// begins. A rank whose handler of SIGINT returns then has an answer. Errors: no descriptor or process is left.
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/standard.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// What carries messages between ranks.
class Transport {
 public:
  /// What a rank has sent.
  struct Message {
    std::uint32_t from{};            ///< the rank
    std::vector<std::byte> bytes{};  ///< all of it
  };
  virtual ~Transport();
  /// Hands a message over. Part of it may leave later, while `receive` is called.
  virtual void send(std::uint32_t rank, std::vector<std::byte> message) = 0;
  /// The next message that has come; nothing: none is here yet.
  virtual std::optional<Message> receive() = 0;
  /// How many bytes were handed over and have not left yet.
  virtual std::uint64_t unsent() const noexcept = 0;
  /// Will nothing more come from this rank, and has everything been received that came?
  virtual bool ended(std::uint32_t rank) const noexcept = 0;

 protected:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
};

/// A connected stream socket per rank, as in SocketExchange, but others than the exchange has; the entry of this rank
/// is -1. The caller keeps the descriptors open, and closes the other ends in this process.
class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(std::vector<int> sockets) : sockets_(std::move(sockets)), peers_(sockets_.size()) {}
  void send(std::uint32_t rank, std::vector<std::byte> message) override;
  std::optional<Message> receive() override;
  std::uint64_t unsent() const noexcept override;
  bool ended(std::uint32_t rank) const noexcept override;
  /// Waits until more can be sent or received, or until the deadline.
  void wait(Deadline) const;
  /// Is there a socket to this rank?
  bool connects(std::uint32_t rank) const noexcept { return sockets_[rank] >= 0; }

 private:
  /// What is to go to a rank.
  struct Outgoing {
    std::uint64_t length{};  ///< goes first
    std::vector<std::byte> bytes{};
    std::size_t whole() const noexcept { return sizeof length + bytes.size(); }
  };
  /// What has still to go to a rank, and what has come from it.
  struct Peer {
    std::deque<Outgoing> out{};
    std::size_t sent{};           ///< of the first one
    std::vector<std::byte> in{};  ///< from `taken` on: a part of a message, or several
    std::size_t taken{};
    bool closed{};
  };
  void move_on(std::size_t rank);
  std::vector<int> sockets_;
  std::vector<Peer> peers_;
  std::vector<std::byte> some_{};  ///< what has just come
  std::size_t next_ = 0;           ///< the rank whose messages come first
};

namespace detail {
class Conductor;
}

/// How a rank gives its bytes to the others, and gets theirs.
class Exchange {
 public:
  virtual ~Exchange();
  /// By which adversarial runs of these ranks take turns; null: they run side by side. Internal, and of in_ranks alone.
  virtual detail::Conductor* conductor() const noexcept { return nullptr; }
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
  explicit SocketExchange(std::vector<int> sockets, detail::Conductor* conductor = nullptr)
      : came_(sockets.size()), sockets_(std::move(sockets)), conductor_(conductor) {}
  Result<void, Diagnostic> publish(std::span<const std::byte>, Deadline) override;
  Result<std::vector<std::byte>, Diagnostic> receive(std::uint32_t rank, Deadline) override;
  detail::Conductor* conductor() const noexcept override { return conductor_; }

 private:
  std::vector<std::deque<std::vector<std::byte>>> came_;  ///< from each rank: what it has published, then the next
  SocketTransport sockets_;
  detail::Conductor* conductor_;
};

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

}}  // namespace sdma::v0_3
