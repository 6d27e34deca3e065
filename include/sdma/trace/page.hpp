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
// Zoom with the wheel or with + and -, move by dragging or with the arrow keys, press 0 to show everything and f to
// return to the first view. Click a packet, or find it by its text, to see its fields, times, position and dwords, and
// the path to it. The path leads from the packet back to the trigger, through everything that it waited for: the packet
// before it in its lane, the signal that satisfied its poll, its doorbell. The page shows how long each step took.
// `critical path` shows the path of the last completion. The part of the address after # records the view, so a link
// opens the same view again.
//
// A page shows ten million packets, in one lane or in many. Packets that are narrower than a pixel are drawn as a
// block; its height is the part of the time during which a packet ran, and it says how many packets it stands for
// and from when to when. Zoom in, or click the block, to see them one by one. A lane shows at most 64 packets at
// once in rows of their own; further ones share the last row, and the page says how many. A path has at most 1000
// steps; its first one leads to the steps before it. If the browser cannot show the trace, for example for lack of
// memory, the page says why.
//
// A page takes about 15 bytes of the file per packet, and about 50
// bytes of the browser's memory. docs/trace.md has measured figures.
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

namespace sdma::inline v0::trace {

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

}  // namespace sdma::inline v0::trace
