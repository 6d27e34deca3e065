// SPDX-License-Identifier: MIT
#include "sdma/check/check.hpp"

#include "../core/plural.hpp"
#include "../schedule/symbols.hpp"
#include "reporter.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 {

using namespace check_detail;

namespace {

struct Examined {
  CheckReport report{};
  /// Words that are stored to and added to. If some were taken to be in order: those of them that are.
  std::vector<std::uint32_t> mixed{};
};

Examined examine(const Schedule& s, const CheckOptions& o, const std::vector<std::uint32_t>& in_order) {
  Model m{s, o};
  m.taken_in_order = in_order;
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
  find_in_network(m, r);
  find_not_covered(m, r);
  find_stuck(m, r);
  for (const auto& e : m.exceeded)
    if (!m.truncated)
      r.add({.rule = "not-all-order",
             .message = e.what + ", so the order of posts and waits is not known, and nothing is proved",
             .hint = e.fixed ? "check it with fewer rounds or queues" : r.larger_limit(e.packets)});
  if (m.box_rows > 0)
    r.add({.rule = "not-all-accesses",
           .message = fmt::format("the boxes have {} rows, of which at most {} are examined, so nothing is proved",
                                  m.box_rows, m.limits.rows()),
           .hint = r.larger_limit(8 * m.box_rows)});
  // What rests on an order or on bytes that are missing would be no error.
  if (m.exceeded.empty() && m.box_rows == 0) {
    find_in_lifetimes(m, r);
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
           .hint = r.larger_limit(m.needed) + "; a hazard between rounds appears within three rounds"});
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
  return {r.finish(), m.mixed_words()};
}

}  // namespace

CheckReport check(const Schedule& s, const CheckOptions& o) {
  auto [report, mixed] = examine(s, o, {});
  // Stores and additions do not commute. But if the posts to a word have one order, each leaves what it left in the
  // followed execution. That is tried where additions after the last store have not sufficed; what holds is kept.
  while (!report.proved() && !mixed.empty()) {
    auto again = examine(s, o, mixed);
    if (again.mixed.size() == mixed.size())
      return std::pair(again.report.errors(), again.report.warnings()) < std::pair(report.errors(), report.warnings())
                 ? std::move(again.report)
                 : std::move(report);
    mixed = std::move(again.mixed);
  }
  return std::move(report);
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

}}  // namespace sdma::v0_3
