// SPDX-License-Identifier: MIT
#pragma once
// Links a queue of a schedule to a machine, real or simulated: chooses its engine and the size of its ring, cuts its
// packets into slots, and relocates their addresses. Internal.
//
//   if (auto d = too_large(queue)) ...                  a packet that no slot of the queue's ring can hold
//   const auto engine = engine_of(queue, links);        the engine that it names, or the one recommended for its peer
//   const auto linked = link_queue(queue, home, then);  home(address): the machine's address for a link address
//
//   packets   | a | b |  c  | d | e |
//   pieces    |-----------| |-------|    cut between packets, each at most half the ring: one slot, one doorbell. With
//                                        doorbell_each also before each packet that moves data, but the first
//
// A condition and the packets that it may skip are never cut: an engine that skips them counts dwords, and would count
// those that fill the end of the ring, too.
//
// Any thread may call these functions. They allocate, so they are for the control path.
#include "../device/link_index.hpp"
#include "../device/request.hpp"
#include "sdma/schedule/schedule.hpp"

#include <bit>
#include <functional>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Can a ring have this size?
constexpr bool is_ring_size(std::uint64_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= kMinRing && bytes <= kMaxRing;
}

/// The size of a queue's ring: as declared, or room for four submits and at least 64K.
std::uint64_t ring_bytes(const Schedule::Queue&) noexcept;

/// Message and hint about the first packet, or condition with what it may skip, that is larger than half the ring;
/// nothing if each of them fits.
std::optional<Diagnostic> too_large(const Schedule::Queue&);

/// The engine that runs a queue. `gpus`: the node's GPU for each GPU of the schedule; empty: the same numbers. An error
/// if the node recommends no engine for the queue's peer.
Result<EngineId> engine_of(const Schedule::Queue&, const LinkIndex&, std::span<const GpuId> gpus = {});

struct Linked {
  /// The content of one slot: dwords from `begin` to `end`.
  struct Piece {
    std::size_t begin{}, end{}, packets{};
  };
  std::uint64_t ring_bytes{};
  std::vector<std::uint32_t> dwords{};  ///< the queue's packets, with the machine's addresses
  std::vector<Piece> pieces{};
};

/// Requires that no packet is too large. `home` maps the value of each address field, and returns any other address
/// unchanged. `then` gets each whole packet, before and after relocation.
Linked link_queue(const Schedule::Queue&, const std::function<GpuVa(GpuVa)>& home,
                  const std::function<void(const PacketView& was, std::span<const std::uint32_t> now)>& then);

}}}  // namespace sdma::v0_3::detail
