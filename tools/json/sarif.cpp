// SPDX-License-Identifier: MIT
#include "sarif.hpp"

#include "sdma/core/version.hpp"

#include <set>
#include <string>

namespace sdma::json {
namespace {

Json location(const FilePosition& at) {
  Json place{{"artifactLocation", {{"uri", at.file}}}};
  if (at.line != 0) {
    place["region"] = {{"startLine", at.line}};
    if (at.column != 0) place["region"]["startColumn"] = at.column;
  } else if (at.offset != FilePosition::kNoOffset) {
    place["region"] = {{"byteOffset", at.offset}, {"byteLength", 4}};
  }
  return {{"physicalLocation", std::move(place)}};
}

/// A text that cannot be read has no rule of docs/rules.md.
std::string rule_of(const Diagnostic& d) { return d.rule.empty() ? "unreadable" : d.rule; }

}  // namespace

Json sarif(std::span<const Diagnostic> all) {
  Json rules = Json::array(), results = Json::array();
  std::set<std::string> known;
  for (const auto& d : all) {
    const auto rule = rule_of(d);
    if (known.insert(rule).second) rules.push_back({{"id", rule}});
    Json one{{"ruleId", rule},
             {"level", name(d.severity)},
             {"message", {{"text", d.hint.empty() ? d.message : d.message + "\nTo do: " + d.hint}}}};
    if (d.at) one["locations"] = Json::array({location(d.at)});
    results.push_back(std::move(one));
  }
  const Json driver{{"name", "sdma check"}, {"version", version().string}, {"rules", rules}};
  const Json run{{"tool", {{"driver", driver}}}, {"results", results}};
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
}

}  // namespace sdma::json
