// SPDX-License-Identifier: MIT
#pragma once
// A dump of a ring, divided by its positions: what the engine has consumed, where the engine is, what is pending.
//
//   const RingPositions at{.rptr = dump.rptr, .wptr = dump.wptr, .first = dump.first.value_or(0)};
//   auto placed = place_ring(dump.dwords, at, "sdma0");
//   for (const RingPart& part : placed->parts)
//     for (const PacketView& v : packets_of(part)) use(v);
//
//        wptr                            rptr                        wptr
//   ------+-------------------------------+---------------------------+---
//         | consumed, the oldest first    | hangs, or is next ...     |
//         |   lost: rest of a packet      | pending                   |
//
// Without positions there is one part, the whole dump. With rptr alone, all dwords follow from rptr on, around the
// ring's end. Positions are bytes; a position that never wraps is taken modulo the ring's size. If the dump begins
// elsewhere than at the ring's start (`first`), or holds what no whole ring can hold (`is_part`), it is a window:
// positions count as `first` does, and nothing wraps.
//
// A part may begin in the middle of a packet. Then several starts are tried: first those whose packets end exactly
// where the part ends, then those with more dwords in packets without reserved bits. `lost` says how many dwords come
// before that start; a note says that it is a choice.
//
// A part may also hold dwords that no packet begins with, and headers of packets that would reach past rptr or wptr.
// Neither can be a packet, and no header gives the length of such garbage. The next start is the one from which most
// dwords read as packets that someone may have written, up to the part's end; a dword that is skipped counts against
// it, and so does each further gap. If no start is worth that, the rest of the part is skipped. Each such `RingGap` is
// a guess: it says why reading was lost, and what the choice rests on. The payload of a NOP belongs to the NOP, so it
// is never garbage.
//
//   00000040: 00000005 00002000 00007f00 00000006    fence
//   00000050: deadbeef 00000007 20202020             a gap of 3 dwords: 0xdeadbeef begins no packet
//   0000005c: 00000005 00003000 00007f00 00000007    fence: the next start, because its packets end at wptr
//
// Allocates; no shared state; any thread may call it. Errors: Diagnostics for positions that contradict the dump.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Positions that came with a dump.
struct RingPositions {
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< bytes
  std::uint64_t first = 0;                      ///< position of the dump's first dword, in bytes
  Generation generation = kDefaultGeneration;   ///< whose packets these are
};

/// The position of the first dword of a text that prints `offset` before it, for positions that were given apart from
/// the text: `offset` if both lie among its `dwords`, else 0, because the column may show addresses.
std::uint64_t first_position(std::uint64_t offset, std::size_t dwords, std::optional<std::uint64_t> rptr,
                             std::optional<std::uint64_t> wptr) noexcept;

/// Is this dump only a part of a ring, though it begins at position 0? A ring has a power of two of at least 64 dwords,
/// and at least one of them is free. What is said of its size, and of what wraps, would be invented.
bool is_part(std::size_t dwords, const RingPositions&) noexcept;

/// Where a part lies, relative to rptr and wptr.
enum class RingPartKind : std::uint8_t {
  whole,     ///< no position is known
  consumed,  ///< the engine has read it
  pending,   ///< from rptr to wptr
  after,     ///< from rptr on; wptr is not known
  stale,     ///< after wptr, in a window
};

/// Dwords that are not read as packets, between two packets of a part. What comes after them is a guess.
struct RingGap {
  std::size_t at = 0;          ///< index of its first dword in the part
  std::size_t dwords = 0;      ///< how many are skipped
  bool inside_packet = false;  ///< the part begins with it, and it may be the end of a packet
  std::string why{};           ///< "0xdeadbeef begins no packet"
  std::string rests_on{};      ///< why reading resumes after it: "the next 3 packets have valid fields and end at wptr"
};

struct RingPart {
  RingPartKind kind = RingPartKind::whole;  ///< relative to rptr and wptr
  std::uint64_t at = 0;                     ///< position of the first dword in bytes, counted as `first` is
  std::vector<std::uint32_t> dwords{};      ///< the part's dwords
  std::vector<RingGap> gaps{};              ///< in their order, apart from each other

  /// Leading dwords that belong to a packet whose beginning is not in the part, or to no packet.
  std::size_t lost() const noexcept { return gaps.empty() || gaps.front().at != 0 ? 0 : gaps.front().dwords; }
  /// Has the engine read it already, or is it left from an earlier lap?
  bool is_old() const noexcept { return kind == RingPartKind::consumed || kind == RingPartKind::stale; }
};

/// A dump, divided at rptr and wptr.
struct PlacedRing {
  std::vector<RingPart> parts{};    ///< in the order of positions
  std::vector<Diagnostic> notes{};  ///< where reading was lost, and what the place at which it continues rests on
};

Result<PlacedRing, Diagnostic> place_ring(std::span<const std::uint32_t> dump, const RingPositions&,
                                          std::string_view name);

/// Where reading was lost, how many dwords are skipped, and what the choice
/// rests on: a sentence without a full stop. `base` is added to positions.
std::string describe(const RingPart&, const RingGap&, std::uint64_t base = 0);

/// Calls fn(const PacketView&) for each packet of a part. Each dword of a gap is a view without `info`.
template <class F> void each_packet(const RingPart& part, Generation generation, F fn) {
  const std::span<const std::uint32_t> all{part.dwords};
  const auto& packets = catalogue(generation);
  auto gap = part.gaps.begin();
  for (std::size_t at = 0; at < all.size();) {
    if (gap != part.gaps.end() && at == gap->at) {
      for (const auto end = at + gap->dwords; at < end; ++at) fn(PacketView{nullptr, all.subspan(at, 1), false});
      ++gap;
      continue;
    }
    const auto v = Reader{all.subspan(at), packets}.next();
    at += v.dwords.size();
    fn(v);
  }
}
/// The packets of a part as a list. A large ring of NOPs has millions of them.
std::vector<PacketView> packets_of(const RingPart&, Generation = kDefaultGeneration);

}}  // namespace sdma::v0_3
