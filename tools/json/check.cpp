// SPDX-License-Identifier: MIT
#include "check.hpp"

#include "sdma/packets/registry.hpp"

#include <fmt/format.h>

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
  if (f.edit) j["edit"] = {{"before", f.edit->before}, {"text", f.edit->text}};
  return j;
}

std::vector<std::string> expected_findings(const Schedule& s) {
  std::vector<std::string> rules;
  for (const auto& e : s.expectations)
    if (e.kind == Schedule::Expectation::Kind::finding) rules.push_back(e.rule);
  return rules;
}

Json assumed(const CheckReport& r, const CheckOptions& o) {
  Json j{{"rules", "docs/ordering.md"}, {"options", Json::array()}};
  for (const auto option : profile_options()) {
    // An option is assumed if it is set already, and differs from the rules themselves.
    auto same = o.profile, other = Profile{};
    if (same.set(option) && same == o.profile && other.set(option) && !(other == Profile{}))
      j["options"].push_back(option);
  }
  j["node"] = o.topology ? o.topology->name : "8 MI300X";
  // The checker says so whenever it assumes it.
  j["other_programs"] = std::any_of(r.findings.begin(), r.findings.end(),
                                    [](const auto& f) { return f.diagnostic.rule == "open-schedule"; });
  return j;
}

std::string summary(const CheckReport& r, const Schedule& s, const std::string& file) {
  const auto checked = fmt::format("(checked packets: {}, waits: {})", r.packets, r.waits);
  if (expects_finding(s))
    return fmt::format("{}: {} {}", file,
                       as_expected(s, r) ? "found what it expects" : "did not find exactly what it expects", checked);
  if (r.errors() + r.warnings() > 0) return fmt::format("{}: something is wrong: see the findings {}", file, checked);
  if (r.proved()) return fmt::format("{}: no race, no deadlock, no missing wait {}", file, checked);
  return fmt::format("{}: nothing wrong was found, but this is not a proof: see the notes {}", file, checked);
}

Json answer_of(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  Json j{{"verdict", name(r.verdict())}, {"file", o.file},           {"packets", r.packets},    {"waits", r.waits},
         {"errors", r.errors()},         {"warnings", r.warnings()}, {"assumed", assumed(r, o)}};
  if (expects_finding(s)) {
    j["expected"] = expected_findings(s);
    j["as_expected"] = as_expected(s, r);
  }
  j["summary"] = summary(r, s, o.file);
  return j;
}

Json of(const CheckReport& r, const CheckOptions& o, const Schedule& s) {
  auto j = answer_of(r, o, s);
  auto& all = j["findings"] = Json::array();
  for (const auto& f : r.findings) all.push_back(of(f));
  return j;
}

Json of(const StreamAnswer& a) {
  const bool clean = a.errors + a.warnings == 0;
  return {
      {"verdict", clean ? "clean" : "findings"},
      {"file", a.file},
      {"bytes", a.bytes},
      {"errors", a.errors},
      {"warnings", a.warnings},
      {"summary", fmt::format("{}: {} (checked bytes: {}; rules about one stream prove nothing)", a.file,
                              clean ? "no error and no warning" : "something is wrong: see the findings", a.bytes)}};
}

Json unread(const std::string& file, std::size_t errors) {
  return {{"verdict", "unread"},
          {"file", file},
          {"errors", errors},
          {"warnings", 0},
          {"summary", fmt::format("{}: the text has errors, so nothing was checked", file)}};
}

Json check_rules() {
  auto all = Json::array();
  const auto add = [&](const auto& id, const char* of, Severity severity, const auto& text) -> Json& {
    return all.emplace_back(Json{{"id", id}, {"of", of}, {"severity", name(severity)}, {"text", text}});
  };
  for (const auto& r : stream_rules()) add(r.id, "stream", r.severity, r.text);
  for (const auto& r : schedule_rules()) add(r.id, "schedule", r.severity, r.text);
  for (const auto& p : kPackets)
    for (const auto& r : p.rules) add(r.id, "packet", Severity::error, r.text)["packet"] = p.name;
  return {{"rules", std::move(all)}};
}

}  // namespace sdma::json
