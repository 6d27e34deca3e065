// SPDX-License-Identifier: MIT
#include "check.hpp"

#include "exit.hpp"
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sdma::json {

Json of(const CheckFinding& f) {
  auto j = of(f.diagnostic);
  auto& places = j["places"] = Json::array();
  for (const auto& s : f.locations) {
    Json p{{"agent", s.agent}, {"offset", s.offset}, {"text", s.text}};
    if (s.line != 0) p["line"] = s.line;
    if (s.epoch != 0) p["epoch"] = s.epoch;
    places.push_back(std::move(p));
  }
  if (!f.overlap.empty()) j["overlap"] = f.overlap;
  auto& rules = j["rests_on"] = Json::array();
  for (const auto* r : f.rests_on) rules.push_back({{"rule", r->id}, {"strength", r->strength}, {"option", r->option}});
  if (!f.edits.empty()) {
    auto& all = j["edits"] = Json::array();
    for (const auto& e : f.edits) {
      all.push_back({{"do", name(e.kind)}, {"line", e.line}});
      if (e.kind != CheckEdit::Kind::remove) all.back()["text"] = e.text;
    }
  }
  if (f.remaining) j["remaining"] = *f.remaining;
  return j;
}

std::optional<Diagnostic> deliberate(const Schedule& s, const std::string& file) {
  if (!expects_finding(s)) return {};
  return Diagnostic{.where = file,
                    .message = "this contains a deliberate error for the checker, so it is not simulated",
                    .hint = "sdma check reports the error"};
}

std::vector<std::string> expected_findings(const Schedule& s) {
  std::vector<std::string> rules;
  for (const auto& e : s.expectations)
    if (e.kind == Schedule::Expectation::Kind::finding) rules.push_back(e.rule);
  return rules;
}

Json assumed(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  Json j{{"rules", "docs/ordering.md"}, {"options", r.assumes}};
  j["node"] = o.topology ? o.topology->name : "8 MI300X";
  auto& gpus = j["gpus"] = Json::array();
  for (std::uint32_t g = 0; g < s.gpus; ++g) gpus.push_back(g < o.gpus.size() ? o.gpus[g].value : g);
  // The checker says so whenever it assumes it.
  j["other_programs"] = std::any_of(r.findings.begin(), r.findings.end(),
                                    [](const auto& f) { return f.diagnostic.rule == "open-schedule"; });
  return j;
}

constexpr std::string_view kRefutedText = "something is wrong: see the errors";

std::string summary(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  std::string said(kRefutedText);
  if (expects_finding(s)) {
    const auto rules = fmt::format("'{}'", fmt::join(expected_findings(s), "', '"));
    said = as_expected(s, r) ? "found " + rules + ", as expected, and no other error"
                             : "expected to find " + rules + " and no other error";
  } else if (r.verdict() == Verdict::proved)
    said = fmt::format("no race, no deadlock, no missing wait{}",
                       r.expectations > 0 ? "; every expectation holds in every order" : "");
  else if (r.verdict() == Verdict::unproved)
    said = "nothing wrong was found, but this is not a proof: see the warnings";
  // Another placement may put two queues on one engine, so a proof names the placement that was asked for.
  std::vector<std::uint32_t> gpus;
  for (const auto g : o.gpus) gpus.push_back(g.value);
  const auto placed = gpus.empty() ? "" : fmt::format(", on GPUs {}", fmt::join(gpus, " "));
  return fmt::format("{}: {}{}{}{} (checked packets: {}, waits: {})", o.file, said, placed,
                     r.assumes.empty() ? "" : ", assuming ", fmt::join(r.assumes, " "), r.packets, r.waits);
}

Json answer_of(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  const auto outcome = tool::outcome_of(s, r);
  Json j{{"verdict", name(r.verdict())}, {"outcome", outcome.word},    {"file", o.file},
         {"packets", r.packets},         {"waits", r.waits},           {"errors", r.errors()},
         {"warnings", r.warnings()},     {"assumed", assumed(r, o, s)}};
  if (expects_finding(s)) {
    j["expected"] = expected_findings(s);
    j["as_expected"] = as_expected(s, r);
  }
  j["exit_code"] = static_cast<int>(outcome.code);
  j["summary"] = summary(r, o, s);
  return j;
}

Json of(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  auto j = answer_of(r, o, s);
  auto& all = j["findings"] = Json::array();
  for (const auto& f : r.findings) all.push_back(of(f));
  return j;
}

Json of_value(const std::string& with, const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  auto named = o;
  named.file += " with " + with;
  auto j = of(r, o, s);
  j["summary"] = summary(r, named, s);
  j["with"] = with;
  return j;
}
Json unread_with(const std::string& with, const std::string& file, const std::vector<Diagnostic>& errors) {
  auto j = unread(file, errors.size());
  j["with"] = with;
  auto& all = j["messages"] = Json::array();
  for (const auto& d : errors) all.push_back(of(d));
  return j;
}

std::string summary(const StreamAnswer& a) {
  const auto said = a.verdict() == Verdict::refuted    ? kRefutedText
                    : a.bytes == 0                     ? "there is nothing to check"
                    : a.verdict() == Verdict::unproved ? "no error, but not everything is known: see the warnings"
                                                       : "no error and no warning";
  const auto assumed =
      a.assumed ? fmt::format(", assumed to be packets of SDMA {}", name_of(*a.assumed)) : std::string();
  return fmt::format("{}: {} (checked bytes: {}{}; rules about one stream prove nothing)", a.file, said, a.bytes,
                     assumed);
}
Json of(const StreamAnswer& a) {
  const auto word = a.verdict() == Verdict::proved ? "clean" : name(a.verdict());
  return {{"verdict", word},
          {"outcome", word},
          {"file", a.file},
          {"bytes", a.bytes},
          {"errors", a.errors},
          {"warnings", a.warnings},
          {"exit_code", static_cast<int>(tool::exit_of(a.verdict()))},
          {"summary", summary(a)}};
}

Json unread(const std::string& file, std::size_t errors) {
  return {{"verdict", "unread"},
          {"outcome", "unread"},
          {"file", file},
          {"errors", errors},
          {"warnings", 0},
          {"exit_code", static_cast<int>(tool::kInput)},
          {"summary", fmt::format("{}: the text has errors, so nothing was checked", file)}};
}

Json unread(const std::string& file, const Diagnostic& why) {
  auto j = unread(file, 1);
  j["summary"] = fmt::format("{}: {}", file, why.message);
  return j;
}

Json covered() {
  auto all = Json::array();
  for (const auto& c : sdma::covered()) all.push_back({{"id", c.id}, {"text", c.text}});
  return {{"covered", std::move(all)}};
}

Json check_rules() {
  auto all = Json::array();
  const auto add = [&](const auto& id, const char* of, Severity severity, const auto& text) -> Json& {
    return all.emplace_back(
        Json{{"id", id}, {"of", of}, {"severity", name(severity)}, {"class", rule_class(severity)}, {"text", text}});
  };
  for (const auto& r : stream_rules()) add(r.id, "stream", r.severity, r.text);
  for (const auto& r : schedule_rules()) add(r.id, "schedule", r.severity, r.text);
  for (const auto& p : kPackets)
    for (const auto& r : p.rules) add(r.id, "packet", Severity::error, r.text)["packet"] = p.name;
  return {{"rules", std::move(all)}};
}

namespace {

std::size_t packets(const Schedule& s) {
  std::size_t n = 0;
  for (const auto& q : s.queues)
    for (Reader r{q.dwords}; r; ++n) r.next();
  return n;
}
std::size_t actions(const std::vector<Schedule::Action>& all) {
  std::size_t n = all.size();
  for (const auto& a : all) n += actions(a.body);
  return n;
}
std::size_t actions(const Schedule& s) {
  std::size_t n = 0;
  for (const auto& h : s.hosts) n += actions(h.actions);
  for (const auto& k : s.kernels) n += actions(k.actions);
  return n;
}

}  // namespace

std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> sizes(const ReducedText& r) {
  const auto &a = r.original, &b = r.checked.schedule;
  const auto lines = static_cast<std::size_t>(std::count(r.text.begin(), r.text.end(), '\n'));
  return {{"lines", {r.lines_before, lines}},
          {"gpus", {a.gpus, b.gpus}},
          {"buffers", {a.buffers.size(), b.buffers.size()}},
          {"signals", {a.signals.size(), b.signals.size()}},
          {"queues", {a.queues.size(), b.queues.size()}},
          {"packets", {packets(a), packets(b)}},
          {"threads", {a.hosts.size() + a.kernels.size(), b.hosts.size() + b.kernels.size()}},
          {"actions", {actions(a), actions(b)}},
          {"expectations", {a.expectations.size(), b.expectations.size()}}};
}

Json of(const ReducedText& r, const std::string& file) {
  Json j{{"file", file}, {"rule", r.rule}, {"text", r.text}, {"tries", r.tries}, {"least", r.least}};
  for (const auto& [what, n] : sizes(r)) {
    j["before"][what] = n.first;
    j["after"][what] = n.second;
  }
  return j;
}

}  // namespace sdma::json
