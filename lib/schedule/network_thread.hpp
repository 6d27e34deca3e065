// SPDX-License-Identifier: MIT
#pragma once
// The progress thread of a rank: executes its queues with network=1, and stores what other nodes have sent. Internal.
//
//   NetworkThread n{impl, transport, run};              // `run`: the same number in all ranks
//   n.map(memory);                                // memory of this node: queues read it
//   home = n.far(symbol);                         // an address for a symbol of another node: for queues only
//   n.start();  queue = n.queue(i, ring_bytes);   // served by a Pipeline, as those of software engines are
//
//   ring -> Pipeline -> shadow -> message to the rank of the peer -> memory there, then words
//
// A Pipeline has no way to write to another machine, so whatever a queue writes has a shadow: pages of this process
// that hold the bytes until they are sent, and go back then. A word of the sender's own node has one, too. Its message
// goes to the peer's rank and returns, so the word changes when all earlier bytes are in memory there.
//
// The peer's thread stores bytes over the bus. Before a word changes, here or at the sender, it flushes that path, and
// after a word in VRAM once more, so that engines see both (C7, C8): a register of each GPU and a read, for each word.
//
// With an adversarial device, a message may be late: bytes pass each other and words, a word waits for all that its
// queue has sent before it, and the words of a Team for everything. How late is a number of rounds, from the seed
// alone. In a run whose ranks take turns (conductor.hpp), the queues and the receiver are agents of its baton
// (HeldNetwork): a round is a turn, a message may come when nothing else can happen, and an addition to the memory of
// a GPU, which goes over the bus, is a load and a store with the turns of others between them.
//
// Any thread may call the functions. The words of a Team that ranks of other nodes read go with `tell`, after what the
// queues have sent. Errors: those of messages and queues are a `trouble`, and the run ends.
#include "../engine/baton.hpp"
#include "../engine/chooser.hpp"
#include "../engine/park.hpp"
#include "../engine/worker.hpp"
#include "sdma/device/device.hpp"
#include "sdma/schedule/bind.hpp"
#include "sdma/schedule/exchange.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Pages of this process; none are used before they are written.
class Pages {
 public:
  explicit Pages(std::uint64_t bytes);  ///< throws std::bad_alloc
  Pages(Pages&& o) noexcept : at_(std::exchange(o.at_, nullptr)), bytes_(o.bytes_) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages();
  std::byte* data() const noexcept { return at_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Gives the whole pages of this range back.
  void drop(std::uint64_t begin, std::uint64_t bytes) const noexcept;

 private:
  std::byte* at_;
  std::uint64_t bytes_;
};

class NetworkThread final : private Worker::Served {
 public:
  /// `processes`: of each rank.
  NetworkThread(Bound::Impl&, Transport&, std::uint64_t run, std::vector<std::uint32_t> processes);
  ~NetworkThread();

  /// Memory that queues read. Its host bytes must be accessible.
  Errc map(const Memory&);
  /// The shadow of this address of the schedule.
  GpuVa shadow(GpuVa link);
  void start();
  /// A queue of the schedule.
  Queue queue(std::size_t index, GpuId gpu, std::uint64_t ring_bytes);

  /// Stores a word of this rank's page in all ranks of other nodes.
  void tell(std::size_t word, std::uint64_t value) noexcept;
  bool is_far(std::uint32_t rank) const noexcept;
  /// The process of a rank of another node.
  MemoryOwner owner(std::uint32_t rank) const noexcept;
  /// Has everything that was sent by way of the peer returned?
  bool quiet() const noexcept { return owed_.load(std::memory_order_acquire) == 0; }
  /// The first fault of a queue, or what is wrong with a message.
  std::optional<Diagnostic> trouble();

 private:
  friend class HeldNetwork;
  class Receiving;
  class Sending;
  struct Sender;
  struct Header;
  struct Shadow {
    Pages pages;
    GpuVa link;  ///< of its first byte
  };

  Progress round() noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;
  void wake() noexcept override { parking_.wake(); }

  void sent(const Sender&, const PacketEvent&);
  void send(std::uint32_t rank, const Header&, std::span<const std::byte> bytes = {});
  void arrived(const Transport::Message&);
  void hold(Transport::Message);
  /// Delivers up to `most` of those that are due. False: none is, and none will be by itself.
  bool deliver(std::size_t most);
  void note_ended();
  /// A turn of the receiver: one message.
  bool receive_turn();
  bool message_sleeps() const noexcept;
  void awaken_message() noexcept;
  void finish_addition();
  bool store(const Header&, std::span<const std::byte> bytes);
  const Shadow& shadow_at(GpuVa) const noexcept;
  void flush() const noexcept;
  void fail(std::string where, std::string message);

  Bound::Impl& out_;
  Transport& transport_;
  const std::uint64_t run_;
  const std::vector<std::uint32_t> processes_;
  AddressSpace space_;
  AddressSpace::Reader reader_{space_, GpuId{}};
  std::map<std::pair<bool, std::size_t>, GpuVa> shadow_of_;  ///< of a symbol
  std::map<GpuVa, Shadow> shadows_;                          ///< by address
  std::vector<std::unique_ptr<Sender>> senders_;

  Parking parking_;
  std::uint32_t ticket_ = 0;
  bool stored_ = false;  ///< bytes, since the last flush
  struct Late;
  std::vector<Late> late_;          ///< messages that have come and are not delivered, in their order
  std::optional<Seeded> lateness_;  ///< of an adversarial device
  std::optional<Sleepiness> sleepiness_, of_additions_;
  enum class Mode : std::uint8_t {
    free,   ///< the thread does all of it
    turns,  ///< a baton does
    words,  ///< the thread receives the words of a Team; nothing else moves
  };
  std::atomic<Mode> mode_{Mode::free};
  struct Addition {
    GpuVa link;
    std::uint64_t sum;
    bool sleeps;
  };
  std::optional<Addition> begun_;  ///< a word of a GPU was loaded, and the sum is not stored yet
  std::uint64_t unsent_ = 0;       ///< after the last turn
  std::atomic<std::uint64_t> ended_{0}, owed_{0};
  std::optional<Diagnostic> trouble_;
  Worker worker_;  ///< its lock guards the transport and what the thread uses
};

/// The network of a rank in the hand of a run. Its thread goes on when this ends.
class HeldNetwork {
 public:
  explicit HeldNetwork(NetworkThread&);
  ~HeldNetwork();
  HeldNetwork(const HeldNetwork&) = delete;
  HeldNetwork& operator=(const HeldNetwork&) = delete;
  std::vector<std::unique_ptr<Baton::Agent>> agents();
  /// No more turns, and nothing moves but the words of a Team.
  void end_turns();

 private:
  NetworkThread& network_;
};

}}}  // namespace sdma::v0_3::detail
