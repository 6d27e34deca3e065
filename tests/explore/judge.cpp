// SPDX-License-Identifier: MIT
// A proof is false if some execution breaks the schedule. An alarm is false if all of them are good, unless the only
// rule is stale-wait and an execution does satisfy the wait early: that breaks nothing by itself.
#include "judge.hpp"

#include "early.hpp"
#include "program.hpp"
#include "sdma/device/topology.hpp"

namespace sdma::explore {

Judgement judge(const Schedule& s, const Profile& profile, const ExploreOptions& options, std::size_t max_packets) {
  Judgement j;
  auto o = options;
  o.profile = profile;
  j.outcome = explore(s, o);
  if (j.outcome.verdict == Ending::unsupported) return j;
  CheckOptions limits{.profile = profile};
  if (max_packets != 0) limits.max_packets = max_packets;
  const auto where = layout_of(s);
  const auto node = where.empty() ? std::nullopt : std::optional(*layout(where));
  limits.topology = node ? &*node : nullptr;
  const auto report = check(s, limits);
  j.proved = report.proved();
  j.errors = report.errors() != 0;
  j.relies_on = report.relies_on;
  j.expectations = report.proved() ? report.expectations : 0;
  for (const auto& f : report.findings) j.unknown_result = j.unknown_result || f.diagnostic.rule == "unknown-result";
  for (const auto& f : report.findings)
    if (f.diagnostic.severity == Severity::error) j.rules.insert(std::string(f.diagnostic.rule));
  j.false_proof = j.proved && j.outcome.broken();
  j.false_alarm = j.errors && j.outcome.spotless();
  if (!j.false_alarm || j.rules != std::set<std::string>{"stale-wait"}) return j;
  o.max_states *= 20;
  // Wrong only if no execution satisfies a reported wait early: so look at many more states.
  for (const auto& f : report.findings) {
    if (f.diagnostic.rule != "stale-wait") continue;
    const auto early = passes_early(s, f, o);
    j.wrong_stale_wait = j.wrong_stale_wait || early == false;
    j.not_judged = j.not_judged || !early;
  }
  j.false_alarm = j.wrong_stale_wait;
  j.right_stale_wait = !j.wrong_stale_wait;
  return j;
}

}  // namespace sdma::explore
