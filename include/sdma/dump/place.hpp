#pragma once
// A dump of a ring by its positions: what the engine has consumed, where it stands, what is pending.
//
//   auto placed = place_ring(dump.dwords, {.rptr = dump.rptr, .wptr = dump.wptr, .first = dump.first.value_or(0)}, "sdma0");
//   for (const RingPart& part : placed->parts)
//     for (const PacketView& v : packets_of(part)) use(v);
//
//        wptr                            rptr                        wptr
//   ------+-------------------------------+---------------------------+---
//         | consumed, the oldest first    | hangs, or is next ...     |
//         |   lost: rest of a packet      | pending                   |
//
// Without positions there is one part, the whole dump. With rptr alone, all dwords follow from rptr on, around the ring's end.
// Positions are bytes; a position that never wraps is taken modulo the ring's size. If the dump begins elsewhere than at the ring's
// start (`first`), it is a window: positions count as `first` does, and nothing wraps.
//
// A part may begin in the middle of a packet. Then several starts are tried: first those whose packets end exactly where the part
// ends, then those with more dwords in packets without reserved bits. `lost` says how many dwords come before that start; a note
// says that it is a choice. A packet that would reach past the part's end cannot be one: its header is shown as a dword, and reading
// goes on after it.
//
// Allocates. No shared state; any thread may call these functions. Errors: Diagnostics for positions that contradict the dump.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sdma::inline v0 {

struct RingPositions {
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< bytes
  std::uint64_t first = 0;                      ///< position of the dump's first dword, in bytes
  Generation generation = kDefaultGeneration;   ///< whose packets these are
};

enum class RingPartKind : std::uint8_t {
  whole,     ///< no position is known
  consumed,  ///< the engine has read it
  pending,   ///< from rptr to wptr
  after,     ///< from rptr on; wptr is not known
  stale,     ///< after wptr, in a window
};

struct RingPart {
  RingPartKind kind = RingPartKind::whole;
  std::uint64_t at = 0;  ///< position of the first dword in bytes, counted as `first` is
  std::vector<std::uint32_t> dwords{};
  std::size_t lost = 0;  ///< leading dwords that belong to a packet whose beginning is not in the part

  /// Has the engine read it already, or is it left from an earlier lap?
  bool is_old() const noexcept { return kind == RingPartKind::consumed || kind == RingPartKind::stale; }
};

struct PlacedRing {
  std::vector<RingPart> parts{};
  std::vector<Diagnostic> notes{};
};

Result<PlacedRing, Diagnostic> place_ring(std::span<const std::uint32_t> dump, const RingPositions&,
                                          std::string_view name);

/// The packets of a part. Each of the `lost` dwords, and each header that cannot be one, is a view without `info`.
std::vector<PacketView> packets_of(const RingPart&, Generation = kDefaultGeneration);

}  // namespace sdma::inline v0
