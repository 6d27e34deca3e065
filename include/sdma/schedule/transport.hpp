// SPDX-License-Identifier: MIT
#pragma once
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
// gives the Bound MPI, as collective_perf does (tools/perf/mpi.cpp).
//
// One thread at a time, and one Bound at a time. A message arrives whole, and messages from one rank to another arrive
// in the order in which they were sent. Nothing waits. No errors: a rank that no longer answers has `ended`.
#include "sdma/core/deadline.hpp"
#include "sdma/core/standard.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace sdma::inline v0 {

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

}  // namespace sdma::inline v0
