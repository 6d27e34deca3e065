// SPDX-License-Identifier: MIT
#pragma once
// Where reading is lost in dwords that begin with a packet, and where it resumes.
//
//   for (const DumpGap& g : find_gaps(dwords, 0, true, packets)) skip(g.at, g.end);
//
// Every dword after a gap is a candidate for the next start. The value of a start is the plausibility of all
// packets from it on, up to the end or to the next gap, which is decided in the same way; so one pass from the end
// to the gap values all of them. Dwords are valued in windows of 4 Mi; a start in a later window is not compared
// with those of an earlier one.
//
// Without a gap, the dwords are read once, and nothing is allocated. Any thread may call these functions. No errors.
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace sdma::inline v0::detail {

/// Can this not be a packet? `bounded`: the engine stops where the dwords end, so no packet reaches past them.
bool is_no_packet(const PacketView&, bool bounded) noexcept;

struct DumpGap {
  std::size_t at = 0, end = 0;  ///< the dwords [at, end) belong to no packet
};
/// The gaps from `begin` on, where a packet begins.
std::vector<DumpGap> find_gaps(std::span<const std::uint32_t> dwords, std::size_t begin, bool bounded,
                               const Catalogue&);

}  // namespace sdma::inline v0::detail
