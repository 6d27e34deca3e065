// SPDX-License-Identifier: MIT
#pragma once
// A stall report as text for people. `describe` is compiled into sdma-runtime.
//
//   auto r = wait(done, Compare::ge, 5, Deadline::in(200ms), ring);
//   if (!r) log(describe(r.error(), [&](GpuVa a, std::span<std::byte> out) { return device.peek(a, out); }));
//
//   queue is at position 0x1c0 of 0x240; probably waiting in poll_mem addr=0x7f0000001000 func=ge reference=5
//   (value: 3)
//     waited for: signal 0x7f0000002000 ge 5 (value: 4)
//     before:     0x1a4 copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000
//     at:         0x1c0 poll_mem addr=0x7f0000001000 func=ge reference=5 (value: 3)
//
// Why "probably": rptr lags, and no document says whether hardware leaves it before or after the poll that waits. So
// both the packet before rptr and the one at rptr are candidates, and each is tested against the current contents of
// memory: a poll whose condition holds is not the cause. For an indirect buffer, the polls inside it are tested. If
// none of these waits, the later polls are tested, because rptr may lag by more than one packet. A poll that is
// satisfied by the time it is tested is ruled out, although it may have been the cause. "Perhaps" means that memory
// could not be examined.
//
// A report may also begin with another sentence: everything was consumed but the completion did not arrive; nothing was
// published; the engine has never read the ring (a lost doorbell?); the engine was still moving (slow, not stuck); the
// positions contradict each other; rptr is at a dword that does not begin a packet. docs/sync.md lists these sentences,
// and says what to do about each.
//
// `peek` reads memory as engines see it, and returns an error if nothing is mapped at the address; it must not fault.
// Without `peek`, values are not shown and no candidate can be ruled out. Allocates, and throws only what the allocator
// and the callbacks throw. A report is a plain value; any thread may describe it.
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/sync/stall_report.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace sdma { inline namespace v0_3 {

/// Fills `out` from the memory at an address. Returns Errc::ok, or why it could not, such as Errc::unmapped.
using Peek = std::function<Errc(GpuVa, std::span<std::byte> out)>;
/// A name for an address ("host.go"), or "" if it has none.
using NameOf = std::function<std::string(GpuVa)>;

/// Returns several lines, without a newline at the end.
std::string describe(const StallReport&, const Peek& = {}, const NameOf& = {});

}}  // namespace sdma::v0_3
