// SPDX-License-Identifier: MIT
#pragma once
// One or two traces as one HTML page that works in any browser, without a network or a trace viewer.
//
//   const PageTrace both[] = {{"simulated", predicted}, {"real", run}};
//   save_page(both, "both.html");                         // each lane of one above that of the other
//
//   gpu0   engine 14 queue 0   simulated  ==copy_linear====|atomic|
//                              real       =====copy_linear=======|atomic|
//          engine 14 queue 1   simulated  ..poll_mem....|copy_linear|
//                              real       .....poll_mem.......|copy_linear|   time, us from each one's first packet -->
//
// The page shows all lanes, one below the other: queues with their packets, and host threads with their actions.
// Packets, signals and actions have the trace's names. In each trace, time 0 is the beginning of the first packet;
// earlier events have negative times. The first view goes from there to the last end of a packet or an action.
//
// With two traces the page pairs lanes of the same group and name. One trace may have a queue's name where the other
// has its number. If the names differ for this reason, the n-th queue of an engine in one trace is paired with the
// n-th in the other. Each trace has a scale of its own, on which its packets fill the view, or, by a switch, both
// have one scale.
//
// docs/trace.md says how to read and to move it. A lane shows at most 64 packets at once in rows of their own; further
// ones share the last row, and the page says how many. A page takes about 15 bytes of the file per packet, and about 50
// bytes of the browser's memory.
//
// Errors: those of writing, as in write.hpp; a page without a trace, or with more than kPageTraces, is also an error.
// Names are text and cannot become markup. The functions allocate about 100 bytes per packet, and to_page also the
// text; any thread may call them.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace sdma { inline namespace v0_3 { namespace trace {

/// A page compares at most this many traces.
inline constexpr std::size_t kPageTraces = 2;

/// A trace and its name on the page.
struct PageTrace {
  std::string name{};  ///< what the page calls it: its file, "simulated"
  Trace trace{};       ///< as write.hpp requires
};

/// The page as HTML; "" if there is no trace, or more than kPageTraces.
std::string to_page(std::span<const PageTrace>);
/// Writes the page to a file piece by piece, and replaces the file if it exists; "-" is standard output.
Result<void, Diagnostic> save_page(std::span<const PageTrace>, const std::string& path);

}}}  // namespace sdma::v0_3::trace
