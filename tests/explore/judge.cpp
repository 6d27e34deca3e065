#include "judge.hpp"

namespace sdma::explore {

Judgement judge(const Schedule& s, const Profile& profile, const ExploreOptions& options, std::size_t max_packets) {
  Judgement j;
  auto o = options;
  o.profile = profile;
  j.outcome = explore(s, o);
  if (j.outcome.verdict == Ending::unsupported) return j;
  CheckOptions limits{.profile = profile};
  if (max_packets != 0) limits.max_packets = max_packets;
  const auto report = check(s, limits);
  j.proved = report.proved();
  j.errors = report.errors() != 0;
  for (const auto& f : report.findings)
    if (f.diagnostic.severity == Severity::error) j.rules.insert(std::string(f.diagnostic.rule));
  j.false_proof = j.proved && j.outcome.broken();
  j.false_alarm = j.errors && j.outcome.spotless();
  j.intent = j.rules == std::set<std::string>{"stale-wait"};
  return j;
}

}  // namespace sdma::explore
