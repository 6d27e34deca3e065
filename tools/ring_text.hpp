// SPDX-License-Identifier: MIT
#pragma once
// A dump with positions as `sdma dis` prints it: marks for rptr and wptr, the packets before rptr, indirect buffers.
//
//   # consumed before rptr: 9 packets; the last 2:
//   #   copy_linear bytes=4K src=0x10000 dst=0x20000
//   #   fence addr=0x7000 value=3
//   # rptr 0x40: the engine stands here; this packet hangs, or is next
//   poll_mem addr=0x7010 reference=1
//   indirect base=0x9000 dwords=8
//   # ib 0x9000, 8 dwords of ib.bin:
//   #   copy_linear bytes=64 src=0x1000 dst=0x2000
//   # reading was lost at 0x60: 0xdeadbeef begins no packet; 2 dwords are skipped. That packets begin again at ...
//   # wptr 0x70: 2 packets pending
//
// Marks are comments, so `sdma as` reads the pending packets back.
#include "sdma/dump/place.hpp"
#include "sdma/stream/text.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

/// The dwords of an indirect buffer.
struct IndirectBuffer {
  std::string file;
  std::uint64_t va{};
  std::vector<std::uint32_t> dwords{};
};

struct RingTextOptions {
  TextOptions text{};     ///< base: VA or position of the ring's first byte
  bool consumed = false;  ///< print all that the engine has consumed, as packets and not as comments
  std::vector<IndirectBuffer> buffers{};
};

/// Is this part printed as packets?
bool is_shown(const RingPart&, const RingTextOptions&) noexcept;
std::string ring_text(const PlacedRing&, const RingPositions&, const RingTextOptions&);
/// One object a line, with "part" (pending, consumed, after, stale), "at_rptr"
/// and, at the first dword of a gap, "gap" beside the members of a packet.
std::string ring_json(const PlacedRing&, const RingTextOptions&);

}  // namespace sdma::tool
