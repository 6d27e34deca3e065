#include "judge.hpp"

#include <algorithm>

namespace sdma::explore {

bool proved(const CheckReport& r, const Outcome& o) {
  if (!r.proved()) return false;
  return std::none_of(r.findings.begin(), r.findings.end(), [&](const CheckFinding& f) {
    const auto& rule = f.diagnostic.rule;
    return rule == "unknown-value" || rule == "not-all-rounds" || rule == "indirect-unknown" ||
           (rule == "engine-wait" && o.held) ||
           ((rule == "engine-wait" || rule == "freed-while-polled") && o.verdict == Verdict::incomplete);
  });
}

Judgement judge(const Schedule& s, const Profile& profile, const ExploreOptions& options, std::size_t max_packets) {
  Judgement j;
  auto o = options;
  o.profile = profile;
  j.outcome = explore(s, o);
  if (j.outcome.verdict == Verdict::unsupported) return j;
  CheckOptions limits{.profile = profile};
  if (max_packets != 0) limits.max_packets = max_packets;
  const auto report = check(s, limits);
  j.proved = proved(report, j.outcome);
  j.errors = report.errors() != 0;
  for (const auto& f : report.findings)
    if (f.diagnostic.severity == Severity::error) j.rules.insert(std::string(f.diagnostic.rule));
  j.false_proof = j.proved && j.outcome.broken();
  j.false_alarm = j.errors && j.outcome.spotless();
  j.intent = j.rules == std::set<std::string>{"stale-wait"};
  return j;
}

}  // namespace sdma::explore
