// SPDX-License-Identifier: MIT
#pragma once
// Compares what `sdma check` says about a schedule with what its executions do.
//
//   Judgement j = judge(schedule, profile);
//   j.false_proof        the checker proves it, and an execution breaks it
//   j.false_alarm        the checker reports errors, and no execution breaks it; j.rules says which
//   j.right_stale_wait   it reports only stale-wait, and an execution does satisfy each of these waits early
#include "explore.hpp"

#include <set>
#include <string>
#include <vector>

namespace sdma::explore {

struct Judgement {
  Outcome outcome{};
  bool proved{}, errors{};
  std::size_t expectations{};  ///< that the checker proves
  bool false_proof{}, false_alarm{};
  bool right_stale_wait{};        ///< only stale-wait, and no false alarm: each wait may be satisfied early (early.hpp)
  bool wrong_stale_wait{};        ///< only stale-wait, and a false alarm: a wait is never satisfied early
  bool not_judged{};              ///< of a right one: the search was cut off
  bool unknown_result{};          ///< the checker does not know whether an expectation holds
  std::set<std::string> rules{};  ///< of the checker's errors
  std::vector<std::string> relies_on{};  ///< entries of the contract that it has
};

/// `max_packets`: the checker's limit; 0: its default. What it does not examine, it must not prove.
Judgement judge(const Schedule&, const Profile&, const ExploreOptions& = {}, std::size_t max_packets = 0);

}  // namespace sdma::explore
