// SPDX-License-Identifier: MIT
#pragma once
// The linker: binds a schedule to a device, so that it can be submitted any number of times.
//
//   auto bound = bind(schedule, device, {.gpus = {GpuId{2}, GpuId{3}}});         // gpu0 is GPU 2, gpu1 is GPU 3
//   if (!bound) for (const auto& e : bound.error()) puts(to_string(e).c_str());
//   bound->submit(0, deadline);                                                  // epoch 1 of queue 0: a doorbell
//   bound->set(go, 1);                                                           // trigger
//   wait(bound->signal(done), Compare::ge, 8, deadline, bound->ring(0));
//   bound->submit(0, deadline);                                                  // epoch 2, off the critical path
//
//   link space                                   device
//   buffer k  (k + 1) << 40         ------->     allocated, aligned as declared, for the GPUs of `map`
//   signal k                        ------->     a word of its own, in the memory of its place
//   at=0x...  a fixed address       ------->     memory that the caller provides at this address: BindOptions::external
//   queue     peer=gpu3 | engine=2  ------->     a ring on the engine that the topology recommends | on engine 2
//   packets   address fields        ------->     relocated once
//             values with an epoch  ------->     stored at each submit; a queue without them is copied unchanged
//
// Epochs. The n-th submit of a queue is its epoch n. If a value of that epoch does not fit its field (a poll compares
// 32 bits and does not wrap), submit returns Errc::epoch_overflow and publishes nothing. `restart` begins again at
// epoch 0 and stores the signals' initial values: call it only after you have seen that everything is complete.
//
// Ranks. Several processes may bind one schedule together, each as another rank. GPUs are divided evenly, in order: of
// four, rank 1 of 2 has the last two. A rank creates the buffers, signals and queues of its GPUs, and opens the buffers
// and signals of the other ranks (device/memory.hpp). Rank 0 also creates the buffers and signals of the host. A host
// thread belongs to the rank that its `rank` names; without `rank`, host threads are divided as GPUs are. A queue may
// be used only by its own rank (`owns`); buffers and signals have addresses in all ranks. After `bind` has returned,
// the ranks exchange nothing any more.
//
// Nodes. ranks_per_node groups ranks into nodes: with {{4}}, ranks 0 to 3 of 8, and 4 to 7; with {{3, 2}}, ranks 0 to 2
// of 5, and 3 and 4 (core/node_sizes.hpp). The ranks of a node share memory; nodes share nothing. A buffer or signal of
// the host belongs to the first rank of the node that uses it. For memory of another node, `bytes` is empty, `address`
// is one that no engine may use, and signals must not be read or stored. A thread of the rank executes its queues with
// network=1, and the Transport carries the bytes that they send.
//
// Threads: any thread may submit, set, add and read. Concurrent submits of one queue are serialised. bind and restart
// are not for hot paths.
// Errors: bind returns Diagnostics, the schedule's own problems first; submit returns an Errc. Destruction destroys the
// queues first, then signals and memory; it does not drain (queue/queue.hpp), except that bytes for other nodes, which
// the Transport has already, get two seconds to leave. The device must outlive the Bound.
#include "sdma/core/deadline.hpp"
#include "sdma/core/names.hpp"
#include "sdma/core/node_sizes.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/device.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

class Exchange;
class Transport;

struct BindOptions {
  /// Memory that the caller keeps until the Bound is destroyed.
  struct ExternalMemory {
    GpuVa va{};                   ///< its address, as the device sees it
    std::span<std::byte> host{};  ///< the same bytes, as the host sees them
  };
  /// The device's GPU for each GPU of the schedule; empty: the same numbers. With nodes, those of GPUs of other nodes
  /// mean nothing, and on a device with fewer GPUs than the schedule, the GPUs of a node are numbered from 0.
  std::vector<GpuId> gpus{};
  /// The memory of buffers and signals with a fixed `at`. A run fills such a buffer only if its `init` says so.
  std::vector<ExternalMemory> external{};
  std::uint32_t rank = 0;   ///< which of the processes this is
  std::uint32_t ranks = 1;  ///< how many processes bind the schedule together: at most one per GPU
  Exchange* exchange{};     ///< with several ranks: passes handles between them (schedule/exchange.hpp). Not owned
  std::chrono::nanoseconds exchange_limit = std::chrono::seconds(60);  ///< how long a bind waits for the other ranks
  NodeSizes ranks_per_node{};  ///< how many ranks each machine has; empty: all are of one
  Transport* transport{};      ///< with several nodes: carries bytes between them (schedule/exchange.hpp)
};

/// What a submit has published with one doorbell, for a recording. Times are those of trace::now().
struct SubmittedPiece {
  std::uint64_t epoch{};     ///< the queue's epoch in this submit
  std::uint64_t position{};  ///< where its first packet begins, as Ring counts
  std::size_t packets{};     ///< how many this doorbell published
  bool waited{};             ///< the ring had no room at first
  std::uint64_t began_ns{};  ///< the ring had room
  std::uint64_t built_ns{};  ///< the packets were in the ring
  std::uint64_t rung_ns{};   ///< the doorbell was stored
};
/// Receives each piece that a submit publishes.
class SubmitObserver {
 public:
  virtual ~SubmitObserver() = default;
  /// On the thread that submits, after each doorbell.
  virtual void submitted(const SubmittedPiece&) noexcept = 0;
};

class Bound;
namespace detail {
class NetworkThread;
class Team;
Team* team_of(const Bound&) noexcept;
NetworkThread* network_of(const Bound&) noexcept;
}  // namespace detail

class Bound {
 public:
  struct Impl;
  explicit Bound(std::unique_ptr<Impl>) noexcept;
  Bound(Bound&&) noexcept;
  Bound& operator=(Bound&&) noexcept;
  ~Bound();

  /// The schedule that was bound.
  const Schedule& schedule() const noexcept;
  /// The device that it is bound to.
  Device& device() const noexcept;

  /// The device address of an address in link space; any other address is returned unchanged.
  GpuVa address(GpuVa link) const noexcept;
  /// "gpu1.buf[64K]" for an address on the device, "" if the schedule has nothing there.
  std::string name(GpuVa) const;
  /// The buffers and signals of the schedule at their addresses on the device.
  const NameTable& names() const noexcept;
  /// The bytes of a range as the host sees them; none if they are in another node. Requires a range within one buffer
  /// or signal of the schedule.
  std::span<std::byte> bytes(const Schedule::Range&) const noexcept;

  /// The word of the signal with this index, for sync/wait.hpp. The signal must have 64 bits, or no `at`.
  const Signal& signal(std::size_t) const noexcept;
  /// The value of the signal with this index, 32 or 64 bits, loaded with acquire.
  std::uint64_t value(std::size_t) const noexcept;
  /// Stores the value of the signal with this index, and releases what this thread wrote before.
  void set(std::size_t, std::uint64_t) const noexcept;
  /// Adds to the signal with this index, atomically, and releases what this thread wrote before. Returns the new value.
  std::uint64_t add(std::size_t, std::uint64_t) const noexcept;

  /// Which of the processes that bound the schedule this is; 0 if it is the only one.
  std::uint32_t rank() const noexcept;
  /// Does this rank have the memory of this GPU or of the host? Without ranks, it has all.
  bool owns(Place) const noexcept;
  /// The rank that keeps this one waiting for ever, because it has ended or given up: "rank 1 does not answer: its
  /// process 4711 has ended". "" if none is known to.
  std::string lost() const;
  /// This rank ends, without its part: from now on, `lost` of the others and their runs name it.
  void give_up() const noexcept;
  /// Does this rank have the queue with this index? Without ranks, it has all. The functions below need it.
  bool owns(std::size_t queue) const noexcept;

  /// The ring of a queue, by its index in the schedule.
  Ring<Producers::many>& ring(std::size_t queue) const noexcept;
  /// The device's queue, by its index in the schedule.
  const Queue& queue(std::size_t) const noexcept;
  /// The packets of a queue, relocated, with the epoch values of the last submit.
  std::span<const std::uint32_t> packets(std::size_t queue) const noexcept;

  /// Publishes the queue's packets with one doorbell (with several if they fill more than half the ring) and returns
  /// the queue's new epoch. timed_out: the ring had no room before the deadline; nothing, or only a part, was
  /// published. epoch_overflow: a value of this epoch does not fit.
  Result<std::uint64_t> submit(std::size_t queue, Deadline, SubmitObserver* = nullptr) const noexcept;
  /// How many times the queue was submitted since bind or restart.
  std::uint64_t epoch(std::size_t queue) const noexcept;
  /// Sets the epoch: the next submit is epoch `n` + 1. No thread may submit meanwhile.
  void set_epoch(std::size_t queue, std::uint64_t n) const noexcept;
  /// Waits until every engine has read everything that was published, then sets epochs to 0 and signals to their
  /// initial values. timed_out: an engine had not read everything by the deadline.
  [[nodiscard]] Errc restart(Deadline) const noexcept;

 private:
  friend detail::Team* detail::team_of(const Bound&) noexcept;
  friend detail::NetworkThread* detail::network_of(const Bound&) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Allocates memory, creates signals and queues, and relocates packets. If that is not possible, the Diagnostics say
/// why.
Result<Bound, std::vector<Diagnostic>> bind(const Schedule&, Device&, const BindOptions& = {});

}}  // namespace sdma::v0_3
