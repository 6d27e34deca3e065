#pragma once
// What to add to a schedule, in words that can be typed into it. Internal.
//
//   edge(m, r, a, b)      "line 8 announces it; before line 11 add: poll_mem addr=gpu1.arrived func=eq reference=1"
//   wait_for(m, r, word)  "wait host.done == 8": the value that the word ends with
//
// A value is that of the packet that announces, so that it holds in every round: where a's queue stores 4*epoch-3, b waits for that.
#include "report.hpp"

namespace sdma {
inline namespace v0 {
namespace check_detail {

/// What puts `b` behind `a`, another agent's, or in the same queue.
std::string edge(const Model&, const Reporter&, At a, At b);
/// What a host waits for to know that all posts to the word are done; nothing, if they are in no order.
std::optional<std::string> wait_for(const Model&, const Reporter&, const Word&);
/// What a counter says when all have counted; nothing, if somebody stores to it, too.
std::optional<std::uint64_t> last_count(const Word&);

}  // namespace check_detail
}  // namespace v0
}  // namespace sdma
