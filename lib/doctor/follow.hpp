// SPDX-License-Identifier: MIT
#pragma once
// Follows one execution of all pending packets, from the positions of a snapshot. Internal.
//
//   Following f{snapshot, lines, waits};
//   f.freeze(2, StopWhy::fault);      // a queue that cannot execute anything
//   f.run();
//   f.stops[0]                        // where queue 0 ends, and why: at the end, at a poll that nothing satisfies, ...
//
// Every queue proceeds as far as it can. A poll of a word whose value is not known holds if the queue was found at it,
// and passes otherwise, after everything else has been tried.
#include "memory.hpp"

#include "sdma/packets/poll.hpp"

#include <compare>
#include <vector>

namespace sdma::inline v0::doctor {

/// A condition that a packet or a host thread waits for.
struct Wait {
  GpuVa va{};
  std::uint32_t bytes = 4;
  Compare func = Compare::eq;
  std::uint64_t reference{};
  std::uint64_t mask = ~std::uint64_t{0};
  bool finite = false;

  bool met(std::uint64_t value) const noexcept { return holds(value & mask, func, reference); }
  std::optional<bool> met(const Memory&) const;
};
/// What a packet waits for; nullopt: it does not wait for a word.
std::optional<Wait> wait_of(const PacketView&);
Wait wait_of(const HostWait&);

enum class StopWhy : std::uint8_t {
  end,           ///< everything that is known to be pending is executed
  waits,         ///< a poll whose condition is false
  waits_unread,  ///< a poll whose word could not be read
  no_packet,     ///< a dword that begins no packet, or a packet that is not for user queues
  cut_off,       ///< wptr lies inside the packet
  wraps,         ///< the packet crosses the end of the ring
  unmapped,      ///< the packet touches an address that is not mapped
  unrung,        ///< the doorbell was rung only up to here
  frozen,        ///< the queue cannot execute anything
};

struct Stop {
  StopWhy why = StopWhy::end;
  std::size_t packet{};  ///< index into Line::packets
};

/// A packet of a line.
struct Post {
  std::size_t queue{}, packet{};
  friend constexpr auto operator<=>(const Post&, const Post&) = default;
};

struct Following {
  Following(const Snapshot&, const std::vector<Line>&);

  void freeze(std::size_t queue) { stops[queue].why = StopWhy::frozen; }
  void run();
  /// Has the packet been executed, before the snapshot or in the followed execution?
  bool executed(const Post& p) const { return p.packet < stops[p.queue].packet && !skipped[p.queue][p.packet]; }
  /// Can it be executed later?
  bool pending(const Post& p) const { return p.packet >= stops[p.queue].packet && !skipped[p.queue][p.packet]; }

  const Snapshot& snapshot;
  const std::vector<Line>& lines;
  Memory now;                         ///< what words hold; after run(), at the end of the execution
  std::vector<Stop> stops{};          ///< one per queue; before run(), where it begins
  std::vector<std::size_t> starts{};  ///< where each queue began
  /// Packets that a condition skips. If rptr is past the condition: if its word makes it false now, or is not known.
  std::vector<std::vector<bool>> skipped{};
  std::vector<std::optional<Post>> woken_by{};  ///< the packet that satisfied the first poll of a queue
  std::vector<bool> assumed{};                  ///< a poll of a word that is not known was taken to be satisfied
  std::vector<bool> waited{};  ///< the packet at which a queue began waited for something that was false
  std::map<std::uint64_t, std::vector<Post>> posts{};  ///< all packets that store to a dword that matters, in order

  /// The COND_EXEC that decides whether a packet is executed.
  std::optional<std::size_t> condition_of(const Post&) const;
  /// Is the condition of a COND_EXEC true? nullopt: its word is not known.
  std::optional<bool> holds_now(const PacketView& condition) const;

 private:
  bool advance(std::size_t queue, bool assume);
  std::optional<StopWhy> refuses(const Line&, std::size_t packet) const;
  std::size_t after_condition(const Line&, std::size_t packet) const;
  std::size_t skip(std::size_t queue, std::size_t condition, std::size_t end);

  std::map<std::uint64_t, Post> last_;
};

}  // namespace sdma::inline v0::doctor
