#pragma once
// Compares what `sdma check` says about a schedule with what its executions do.
//
//   Judgement j = judge(schedule, profile);
//   j.false_proof        the checker proves it, and an execution breaks it
//   j.false_alarm        the checker reports errors, and no execution breaks it; j.rules says which
#include "explore.hpp"

#include <set>
#include <string>

namespace sdma::explore {

struct Judgement {
  Outcome outcome{};
  bool proved{}, errors{};
  bool false_proof{}, false_alarm{};
  bool intent{};                  ///< of a false alarm: it is only about what a wait is meant for (stale-wait)
  std::set<std::string> rules{};  ///< of the checker's errors
};

/// `max_packets`: the checker's limit; 0: its default. What it does not examine, it must not prove.
Judgement judge(const Schedule&, const Profile&, const ExploreOptions& = {}, std::size_t max_packets = 0);

}  // namespace sdma::explore
