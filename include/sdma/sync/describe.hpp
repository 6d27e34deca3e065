#pragma once
// A stall report as sentences for a person. Compiled: in sdma-runtime.
//
//   auto r = wait(done, Compare::ge, 5, Deadline::in(200ms), ring);
//   if (!r) log(describe(r.error(), [&](GpuVa a, std::span<std::byte> out) { return device.peek(a, out); }));
//
//   queue stands at position 0x1c0 of 0x240; probably waiting in poll_mem addr=0x7f0000001000 func=ge reference=5 (there: 3)
//     waited for: signal 0x7f0000002000 ge 5 (there: 4)
//     before:     0x1a4 copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000
//     at:         0x1c0 poll_mem addr=0x7f0000001000 func=ge reference=5 (there: 3)
//
// "Probably": rptr lags, and whether it stands before or behind the poll that waits is not known of the hardware. So the
// packet before rptr and the one at rptr are candidates, and each is tested against memory as it is now: a poll that holds
// is none; of an indirect buffer the polls in it are tested. Where neither waits, those further on are tried, for rptr may lag
// by more than one packet. A poll that memory satisfies by the time of the look is left out, though it may have been the
// cause. "Perhaps": memory could not be asked.
//
// Other sentences: everything was consumed and the completion did not arrive; nothing was published; the engine has never
// read (a lost doorbell?); it was still moving (slow, not stuck); positions contradict each other; rptr stands at what is no
// packet. docs/sync.md lists each with what to do.
//
// `peek` reads memory as engines see it and answers with an error where nothing is mapped; it must not fault. Without one,
// values are not shown and no candidate can be excluded. Allocates; throws nothing but what the allocator and the callbacks
// throw. Any thread: the report is a value.
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/sync/stall_report.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace sdma {
inline namespace v0 {

/// Fills `out` from the memory at an address: Errc::ok, or Errc::unmapped and the like.
using Peek = std::function<Errc(GpuVa, std::span<std::byte> out)>;
/// What people call an address, or "" ("host.go").
using NameOf = std::function<std::string(GpuVa)>;

/// Several lines, without a newline at the end.
std::string describe(const StallReport&, const Peek& = {}, const NameOf& = {});

}  // namespace v0
}  // namespace sdma
