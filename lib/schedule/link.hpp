#pragma once
// What a queue of a schedule becomes on any machine, real or simulated: which engine, how large a ring, which packets in one
// slot, and where their addresses point. Internal.
//
//   if (auto d = too_large(queue)) ...                  a packet that no slot of the queue's ring takes
//   const auto engine = engine_of(queue, topology);     the engine that it names, or that its peer asks for
//   const auto linked = link_queue(queue, home);        home(link address): where it lies there
//
//   packets   | a | b |  c  | d | e |
//   pieces    |-----------| |-------|    half the ring at most, between packets: each is one slot, with one doorbell
//
// Plain functions, any thread. Control path: they allocate.
#include "../device/request.hpp"
#include "sdma/schedule/schedule.hpp"

#include <bit>
#include <functional>

namespace sdma {
inline namespace v0 {
namespace detail {

/// May a ring have this size?
constexpr bool is_ring_size(std::uint64_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= kMinRing && bytes <= kMaxRing;
}

/// The bytes of a queue's ring: what it asks for, or room for four submits, 64K at least.
std::uint64_t ring_bytes(const Schedule::Queue&) noexcept;

/// The message and the hint about the first packet that is larger than half the ring; nothing if all of them fit.
std::optional<Diagnostic> too_large(const Schedule::Queue&);

/// The engine that runs a queue. `gpus`: the node's GPU for each of the schedule's; empty: the same numbers. An error where
/// the node recommends none for the queue's peer.
Result<EngineId> engine_of(const Schedule::Queue&, const Topology&, std::span<const GpuId> gpus = {});

struct Linked {
  /// What one slot takes: dwords from `begin` to `end`.
  struct Piece {
    std::size_t begin{}, end{}, packets{};
  };
  std::uint64_t ring_bytes{};
  std::vector<std::uint32_t> dwords{};  ///< the queue's packets, with the addresses that they have on the machine
  std::vector<Piece> pieces{};
};

/// Requires that no packet is too large. `home` maps the value of an address field; what is no link address stays as it is.
/// `then` sees each whole packet: as it was, and as it is now.
Linked link_queue(const Schedule::Queue&, const std::function<GpuVa(GpuVa)>& home,
                  const std::function<void(const PacketView& was, std::span<const std::uint32_t> now)>& then);

}  // namespace detail
}  // namespace v0
}  // namespace sdma
