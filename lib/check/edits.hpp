// SPDX-License-Identifier: MIT
#pragma once
// Suggests what to add to a schedule, as text that can be pasted into it. Internal.
//
//   edge(m, r, a, b).hint "line 8 announces it; before line 11 add: poll_mem addr=gpu1.arrived func=eq reference=1"
//   wait_for(m, r, word)  "wait host.done == 8": the final value of the word
//
// A suggested value is the one that the posting packet stores, so it is right in every round: if the queue of `a`
// stores 4*epoch-3, `b` waits for 4*epoch-3.
#include "reporter.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {

struct Proposal {
  std::string hint{};
  std::optional<CheckEdit> edit{};  ///< the line that the hint names, if it is the whole change
};

/// A change that orders `b` after `a`; they belong to two agents, or to one queue.
Proposal edge(const Model&, const Reporter&, Position a, Position b);
/// The wait with which a host learns that all posts to the word have happened; nullopt if the posts are unordered.
std::optional<std::string> wait_for(const Model&, const Reporter&, const Word&);
/// The final value of a counter; nullopt if a post also stores to it.
std::optional<std::uint64_t> last_count(const Word&);

}}}  // namespace sdma::v0_3::check_detail
