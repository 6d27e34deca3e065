// SPDX-License-Identifier: MIT
#include "sdma/check/check.hpp"

#include "../schedule/symbols.hpp"
#include "report.hpp"
#include "sdma/core/plural.hpp"

#include <algorithm>

namespace sdma::inline v0 {

using namespace check_detail;

CheckReport check(const Schedule& s, const CheckOptions& o) {
  Model m{s, o};
  execute(m);
  m.build_chains_again();
  do find_order(m);
  while (m.find_disorder());
  Reporter r{m};
  find_in_packets(m, r);
  find_refused(m, r);
  find_misplaced(m, r);
  find_vram_fences(m, r);
  find_full_rings(m, r);
  find_in_kernels(m, r);
  find_not_covered(m, r);
  find_stuck(m, r);
  for (const auto& e : m.exceeded)
    r.add({.rule = "not-all-order",
           .message = e + ", so the order of posts and waits is not known, and nothing is proved",
           .hint = "check it with fewer rounds or queues"});
  // What rests on an order that is missing would be no error.
  if (m.exceeded.empty()) {
    find_races(m, r);
    find_bad_waits(m, r);
    find_unknown_samples(m, r);
    find_held_engines(m, r);
    find_unawaited(m, r);
  }
  if (m.truncated)
    r.add({.rule = "not-all-rounds",
           .message = "only the first " + std::to_string(m.packets) +
                      " packets are checked, not the rest of the schedule, so nothing is proved",
           .hint = "check it with fewer rounds: a hazard between rounds appears within three rounds"});
  if (m.open)
    r.add({.rule = "open-schedule",
           .message = !detail::submits_queues(s) && !o.open
                          ? "the schedule has no host thread: how its queues are submitted, which signals are set and "
                            "what is waited for is assumed, not proved"
                          : "the schedule is part of a larger system: what its words hold at first, and what the rest "
                            "stores to them, is assumed, not proved",
           .hint = !detail::submits_queues(s) && !o.open ? "add a host block" : ""});
  if (o.map && o.map->choices > 0)
    r.add({.rule = "not-all-choices",
           .message = "the text leaves " + plural(o.map->choices, "choice") +
                      " open, and only the first alternative of each is checked",
           .hint = "set each choice with --set; sdma check FILE checks all alternatives"});
  if (r.proves()) find_results(m, r);
  return r.finish();
}

static std::size_t count(const CheckReport& r, Severity severity) noexcept {
  return static_cast<std::size_t>(std::count_if(r.findings.begin(), r.findings.end(),
                                                [&](const auto& f) { return f.diagnostic.severity == severity; }));
}
std::string_view name(Verdict v) noexcept {
  constexpr std::string_view kNames[] = {"proved", "unproved", "refuted"};
  return kNames[static_cast<std::size_t>(v)];
}
std::string_view name(CheckEdit::Kind k) noexcept {
  constexpr std::string_view kNames[] = {"insert", "replace", "remove"};
  return kNames[static_cast<std::size_t>(k)];
}
Verdict CheckReport::verdict() const noexcept { return verdict_of(errors(), warnings()); }
std::size_t CheckReport::errors() const noexcept { return count(*this, Severity::error); }
std::size_t CheckReport::warnings() const noexcept { return count(*this, Severity::warning); }

bool as_expected(const Schedule& s, const CheckReport& r) {
  const auto wanted = [&](const std::string& rule) {
    return std::any_of(s.expectations.begin(), s.expectations.end(),
                       [&](const auto& e) { return e.kind == Schedule::Expectation::Kind::finding && e.rule == rule; });
  };
  for (const auto& f : r.findings)
    if (f.diagnostic.severity == Severity::error && !wanted(f.diagnostic.rule)) return false;
  return std::all_of(s.expectations.begin(), s.expectations.end(), [&](const auto& e) {
    return e.kind != Schedule::Expectation::Kind::finding ||
           std::any_of(r.findings.begin(), r.findings.end(),
                       [&](const auto& f) { return f.diagnostic.rule == e.rule; });
  });
}

Result<Schedule, Diagnostic> schedule_of(std::span<const RingDump> dumps) {
  Schedule s;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const auto& d = dumps[i];
    auto p = pending(d, d.label.empty() ? "ring " + std::to_string(i) : d.label);
    if (!p) return std::move(p.error());
    s.gpus = std::max(s.gpus, d.gpu.value + 1);
    s.add_queue({.place = Place::gpu(d.gpu.value),
                 .name = "ring" + std::to_string(i),
                 .engine = d.engine.value,
                 .dwords = std::move(p->dwords)});
  }
  return s;
}

}  // namespace sdma::inline v0
