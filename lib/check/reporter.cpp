// SPDX-License-Identifier: MIT
#include "reporter.hpp"

#include "../stream/print.hpp"
#include "sdma/stream/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {

bool Reporter::admit(const std::string& rule) {
  const auto n = ++counts_[rule];
  return m_.options.max_findings == 0 || n <= m_.options.max_findings;
}

bool Reporter::first_of_line(Position p, std::string_view rule) {
  const auto at = line(p);
  return at == 0 || lines_.insert({at, std::string(rule)}).second;
}

std::string Reporter::agent(std::uint32_t a) const {
  const auto& agent = m_.agents[a];
  if (agent.kind == Agent::Kind::host) return "host " + m_.schedule.hosts[agent.index].name;
  if (agent.kind == Agent::Kind::kernel) {
    const auto& k = m_.schedule.kernels[agent.index];
    return "kernel " + to_string(k.place) + "." + k.name;
  }
  return detail::queue_name(m_.schedule.queues[a]);
}

SourceMap::Location Reporter::location(Position p) const {
  const auto* map = m_.options.map;
  if (!map) return {};
  if (const auto* item = m_.item_at(p.agent, p.position)) return map->packet(p.agent, item->dword);
  const auto& agent = m_.agents[p.agent];
  const auto* step = m_.step_at(p.agent, p.position);
  const auto actor = agent.kind == Agent::Kind::kernel ? m_.schedule.hosts.size() + agent.index : agent.index;
  if (agent.kind == Agent::Kind::queue || !step || actor >= map->actions.size()) return {};
  return map->actions[actor][step->source];
}

std::string Reporter::label(Position p) const {
  const auto s = location(p);
  const auto& agent = m_.agents[p.agent];
  const auto* item = m_.item_at(p.agent, p.position);
  const auto* step = m_.step_at(p.agent, p.position);
  auto out = s.line != 0 ? std::to_string(s.line) + m_.options.map->contexts[s.context]
             : item      ? "+" + detail::hex_text(std::uint64_t{4} * item->dword)
                         : "step " + std::to_string(p.position);
  if (item && agent.submits > 1) out += " (epoch " + std::to_string(m_.epoch_at(p.agent, p.position)) + ")";
  if (agent.kind != Agent::Kind::queue && step && step->epoch > 0)
    out += " (round " + std::to_string(step->epoch) + ")";
  return out;
}

std::string Reporter::place(Position p) const { return location(p).line != 0 ? "line " + label(p) : unlined(p); }

std::uint32_t Reporter::own_line(Position p) const {
  const auto at = location(p);
  return at.context == 0 ? at.line : 0;
}

std::string Reporter::unlined(Position p) const {
  const bool packet = m_.item_at(p.agent, p.position) != nullptr;
  return agent(p.agent) + (packet ? "" : " ") + label(p);
}

std::string Reporter::text(Position p) const {
  if (const auto* item = m_.item_at(p.agent, p.position))
    return to_text(m_.schedule, m_.schedule.queues[p.agent], item->dword);
  const auto* step = m_.step_at(p.agent, p.position);
  if (!step) return {};
  using Kind = Schedule::Action::Kind;
  if (step->kind == Step::Kind::submit) return to_text(m_.schedule, {.kind = Kind::submit, .queues = {step->target}});
  auto action = m_.action(p.agent, *step);
  if (step->sync) action.signal = GpuVa{m_.words[step->sync->word].address};
  if (action.kind != Kind::sample) action.value = step->value;
  return to_text(m_.schedule, action);
}

std::string Reporter::range(std::uint64_t begin, std::uint64_t end) const {
  return detail::range_text(m_.schedule, {GpuVa{begin}, end - begin});
}
std::string Reporter::word(const Word& w) const {
  const auto queue = rptr_of(w.address);
  return queue ? detail::queue_name(m_.schedule.queues[*queue]) + ".rptr"
               : detail::address_text(m_.schedule, GpuVa{w.address});
}

/// The severity of a rule about schedules, or else about streams; a packet's own rules are errors.
static Severity severity_of(std::string_view rule) noexcept {
  const auto in = [&](const auto& rules) {
    const auto r = std::lower_bound(rules.begin(), rules.end(), rule, [](const auto& x, auto id) { return x.id < id; });
    return r != rules.end() && r->id == rule ? std::optional(r->severity) : std::nullopt;
  };
  return in(schedule_rules()).value_or(in(stream_rules()).value_or(Severity::error));
}

void Reporter::store(Finding f) {
  if (!f.places.empty() && f.where.empty() && !f.at) {
    if (const auto l = location(f.places.back()); l.line != 0) f.at = position(l);
    else f.where = m_.options.file + ": " + unlined(f.places.back());
  }
  if (f.at) f.where = to_string(f.at);
  if (f.where.empty())
    f.where = m_.options.map && !m_.options.map->file.empty() ? m_.options.map->file : m_.options.file;
  CheckFinding out{.overlap = std::move(f.overlap)};
  out.diagnostic = {.rule = std::string(f.rule),
                    .severity = severity_of(f.rule),
                    .where = std::move(f.where),
                    .at = std::move(f.at),
                    .message = std::move(f.message),
                    .hint = std::move(f.hint)};
  auto& excerpt = out.diagnostic.excerpt;
  const auto line = [&](std::string s) { excerpt += (excerpt.empty() ? "  " : "\n  ") + std::move(s); };
  constexpr std::size_t kWidest = 100;
  std::size_t labels = 0, agents = 0, texts = 0;
  for (const auto p : f.places) {
    labels = std::max(labels, label(p).size() + 1);
    agents = std::max(agents, agent(p.agent).size());
    texts = std::max(texts, std::min(text(p).size(), kWidest));
    if (out.diagnostic.severity == Severity::error) agents_with_errors_.insert(p.agent);
  }
  for (std::size_t i = 0; i < f.places.size(); ++i) {
    const auto p = f.places[i];
    const auto* item = m_.item_at(p.agent, p.position);
    auto t = text(p);
    out.locations.push_back({.agent = agent(p.agent),
                             .line = location(p).line,
                             .offset = item ? item->dword * 4ull : 0,
                             .epoch = m_.epoch_at(p.agent, p.position),
                             .text = t});
    if (t.size() > kWidest) t.replace(kWidest, std::string::npos, "..");
    const bool note = i < f.notes.size() && !f.notes[i].empty();
    line(fmt::format("{:<{}} {:<{}}  {:<{}}{}", label(p) + ":", labels, agent(p.agent), agents, t, note ? texts : 0,
                     note ? "  " + f.notes[i] : ""));
  }
  for (auto& m : f.more) line(std::move(m));
  for (const auto id : f.rests_on)
    if (const auto* r = ordering_rule(id)) {
      out.rests_on.push_back(r);
      line("rests on " + std::string(r->id) + " (" + std::string(r->strength) + "): " + std::string(r->text) +
           (r->option.empty() ? "" : "; --assume " + std::string(r->option) + " removes this rule"));
    }
  if (f.edit) out.edits = {std::move(*f.edit)};
  found_.push_back(std::move(out));
}

bool Reporter::proves() const noexcept {
  return std::all_of(found_.begin(), found_.end(),
                     [](const CheckFinding& f) { return f.diagnostic.severity < Severity::warning; });
}

std::string Reporter::larger_limit(std::size_t would_do) const {
  if (would_do > 0) return fmt::format("check fewer rounds, or with --max-packets={}", would_do);
  return fmt::format("check fewer rounds, or with --max-packets={}, which examines twice as much",
                     2 * m_.limits.packets);
}

CheckReport Reporter::finish() {
  CheckReport r{.packets = m_.packets,
                .waits = m_.waits,
                .expectations = expectations_,
                .unread = std::move(unread_),
                .engine_plans = std::move(engine_plans_),
                .relies_on = std::move(relies_on_)};
  for (auto& f : found_) f.diagnostic.severity = taken(f.diagnostic.severity, m_.options.strict);
  for (const auto& [rule, n] : counts_)
    if (m_.options.max_findings != 0 && n > m_.options.max_findings)
      store({.rule = "not-shown",
             .message = "findings of '" + rule + "' that are not shown: " + std::to_string(n - m_.options.max_findings),
             .hint = "--max-findings=0 shows all"});
  std::stable_sort(found_.begin(), found_.end(),
                   [](const auto& a, const auto& b) { return a.diagnostic.severity > b.diagnostic.severity; });
  r.findings = std::move(found_);
  // Those that the profile adds to the rules; then defaults that the schedule has needed.
  for (const auto option : profile_options()) {
    auto same = m_.profile, other = Profile{};
    if (same.set(option) && same == m_.profile && other.set(option) && !(other == Profile{}))
      r.assumes.emplace_back(option);
  }
  r.assumes.insert(r.assumes.end(), assumes_.begin(), assumes_.end());
  return r;
}

}}}  // namespace sdma::v0_3::check_detail
