// SPDX-License-Identifier: MIT
#pragma once
// The list of all packets, as types. What is known about every packet at once derives from it: the registry
// (packets/registry.hpp) and the lengths (packets/lengths.hpp).
//
//   template <class... P> void each(PacketList<P...>);
//
//   each(Packets{});
//
// Types only: no shared state and no errors. The list has the packets of all generations.
#include "sdma/packets/cache.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/copy_pages.hpp"
#include "sdma/packets/page_table.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/tiled.hpp"
#include "sdma/packets/write.hpp"

namespace sdma::inline v0 {

/// Types of packets; `size` is their number.
template <class... P> struct PacketList { static constexpr std::size_t size = sizeof...(P); };

/// Every described packet in the order of op and sub_op; if one pattern contains another, the narrower comes first.
using Packets =
    PacketList<Nop, CopyLinear, CopyBroadcast, CopyStruct, CopySubwindow, CopyDirtyPage, CopyPhysical, CopySwap, Write,
               Indirect, Fence, Trap, Semaphore, MemIncr, PollMem, HdpFlush, PollReg, PollRegToMem, PollDirtyBits,
               PollVerify, CondExec, Atomic, Fill, FillMulti, PteGenerate, PteCopy, PteModify, PteCopyBackwards,
               TimestampSet, TimestampLocal, Timestamp, SrbmWrite, PreExec, DummyTrap, Gcr>;

}  // namespace sdma::inline v0
