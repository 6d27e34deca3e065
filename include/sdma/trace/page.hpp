#pragma once
// One or two traces as a page of HTML that needs nothing else: no network, no viewer, any browser.
//
//   save_page({{"run.jsonl", run}}, "run.html");
//   save_page({{"simulated", predicted}, {"real", run}}, "both.html");       // each lane of one above that of the other
//
//   gpu0   engine 14 queue 0   simulated  ==copy_linear====|atomic|
//                              real       =====copy_linear=======|atomic|
//          engine 14 queue 1   simulated  ..poll_mem....|copy_linear|
//                              real       .....poll_mem.......|copy_linear|        time, us from each one's beginning -->
//
// Lanes stand under each other, those of one group and name in two traces together, or of one engine's queue where a model has
// its name and a run its number, at one scale; each of two begins at its own first packet, and what came before has negative
// times. Wheel or + and - zoom, dragging or arrows move, 0 shows all. A packet that is clicked, or found by its text, shows its fields, times, position and dwords, and the path to it: back from the packet through what it waited for
// (its lane's packet before, the signal that satisfied its poll, its doorbell) to the trigger, with what each step took.
// `critical path` shows that of the last completion. The part behind # in the address keeps what is shown, so that a link
// shows it again.
//
// Errors: of writing, as in write.hpp; a page of no trace, or of more than kPageTraces, is a bad argument. Names are text
// and cannot become markup. Allocates about 200 bytes a packet. Any thread.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace sdma {
inline namespace v0 {
namespace trace {

/// More than two side by side are not compared, only confused.
inline constexpr std::size_t kPageTraces = 2;

struct PageTrace {
  std::string name{};  ///< what the page calls it: its file, "simulated"
  Trace trace{};       ///< as write.hpp requires
};

/// The page; "" for no trace, and for more than kPageTraces.
std::string to_page(std::span<const PageTrace>);
/// To a file, replaced if it is there; "-": standard output.
Result<void, Diagnostic> save_page(std::span<const PageTrace>, const std::string& path);

}  // namespace trace
}  // namespace v0
}  // namespace sdma
