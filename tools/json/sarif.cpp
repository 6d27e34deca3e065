// SPDX-License-Identifier: MIT
#include "sarif.hpp"

#include "exit.hpp"
#include "rule_sections.hpp"
#include "sdma/core/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma::json {
namespace {

/// A text that cannot be read has no rule. docs/rules.md describes it among the other failures.
std::string rule_of(const Diagnostic& d) { return d.rule.empty() ? "unreadable" : d.rule; }

Json text(std::string_view said) { return {{"text", said}}; }
Json message(const Diagnostic& d) { return text(d.hint.empty() ? d.message : d.message + "\nTo do: " + d.hint); }

/// Code hosts show a finding only at a line, so one about a whole file is at the first.
Json region(const FilePosition& at) {
  if (at.line == 0 && at.offset != FilePosition::kNoOffset) return {{"byteOffset", at.offset}, {"byteLength", 4}};
  Json j{{"startLine", std::max<std::uint64_t>(at.line, 1)}};
  if (at.column != 0) j["startColumn"] = at.column;
  return j;
}
Json location(const SarifResult& r) {
  const auto& at = r.diagnostic.at;
  return {
      {"physicalLocation", {{"artifactLocation", {{"uri", uri_of(at ? at.file : r.file)}}}, {"region", region(at)}}}};
}

Json rule(const std::string& id) {
  Json j{{"id", id}};
  const auto* const known =
      std::find_if(std::begin(kRuleSections), std::end(kRuleSections), [&](const auto& r) { return r.id == id; });
  if (known == std::end(kRuleSections)) return j;
  j["shortDescription"] = text(known->short_text);
  j["fullDescription"] = text(known->full_text);
  j["help"] = {{"text", known->help}, {"markdown", known->help_markdown}};
  j["defaultConfiguration"] = {{"level", known->level}};
  if (!kSiteUrl.empty()) j["helpUri"] = fmt::format("{}rules/#{}", kSiteUrl, id);
  return j;
}

}  // namespace

std::string uri_of(std::string_view file) {
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=@/";
  std::string uri = file.starts_with('/') ? "file://" : "";
  for (const char c : file) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || kPlain.find(c) != kPlain.npos) uri += c;
    else uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json sarif(const SarifLog& log) {
  Json rules = Json::array(), results = Json::array(), notifications = Json::array();
  std::vector<std::string> ids;
  for (const auto& r : log.results) {
    const auto id = rule_of(r.diagnostic);
    const auto at = std::find(ids.begin(), ids.end(), id);
    const auto index = at - ids.begin();
    if (at == ids.end()) ids.push_back(id), rules.push_back(rule(id));
    results.push_back({{"ruleId", id},
                       {"ruleIndex", index},
                       {"level", name(r.diagnostic.severity)},
                       {"message", message(r.diagnostic)},
                       {"locations", Json::array({location(r)})}});
  }
  for (const auto& d : log.messages) {
    auto said = message(d);
    if (!d.where.empty()) said["text"] = d.where + ": " + said["text"].get<std::string>();
    notifications.push_back({{"level", name(d.severity)}, {"message", std::move(said)}});
  }
  const bool did = log.exit_code == tool::kOk || log.exit_code == tool::kRefuted || log.exit_code == tool::kUndecided;
  Json driver{{"name", "sdma check"}, {"version", version().string}};
  if (!kSiteUrl.empty()) driver["informationUri"] = kSiteUrl;
  driver["rules"] = std::move(rules);
  Json invocation{{"executionSuccessful", did}, {"exitCode", log.exit_code}};
  if (!notifications.empty()) invocation["toolExecutionNotifications"] = std::move(notifications);
  const Json run{{"tool", {{"driver", std::move(driver)}}},
                 {"invocations", Json::array({std::move(invocation)})},
                 {"results", std::move(results)}};
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
}

}  // namespace sdma::json
