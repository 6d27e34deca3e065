// SPDX-License-Identifier: MIT
#include "json.hpp"

#include "core/words.hpp"
#include "sdma/trace/write.hpp"

namespace sdma::json {

Json of(const Diagnostic& d) {
  Json j{{"rule", d.rule}, {"severity", name(d.severity)}, {"where", d.where}};
  if (d.at) j["file"] = d.at.file;
  if (d.at.line != 0) j["line"] = d.at.line;
  if (d.at.column != 0) j["column"] = d.at.column;
  if (d.at.offset != FilePosition::kNoOffset) j["offset"] = d.at.offset;
  j["message"] = d.message;
  if (!d.excerpt.empty()) j["excerpt"] = d.excerpt;
  j["hint"] = d.hint;
  return j;
}

Json of(std::span<const Diagnostic> all) {
  auto j = Json::array();
  for (const auto& d : all) j.push_back(of(d));
  return j;
}

Diagnostic diagnostic(const Json& j) {
  const auto severity = j.at("severity").get<std::string>();
  Diagnostic d{.rule = j.at("rule"), .where = j.at("where"), .message = j.at("message"), .hint = j.at("hint")};
  for (const auto s : {Severity::note, Severity::warning})
    if (severity == name(s)) d.severity = s;
  d.at.file = j.value("file", "");
  d.at.line = j.value("line", d.at.line);
  d.at.column = j.value("column", d.at.column);
  d.at.offset = j.value("offset", d.at.offset);
  d.excerpt = j.value("excerpt", "");
  return d;
}

std::string line(const Json& j) { return j.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"; }
std::string document(const Json& j) { return j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"; }

Json of(const Bounds& b) { return {{"low", b.low}, {"value", b.value}, {"high", b.high}}; }
Json of(const Energy& e) {
  Json j{{"joules", of(e.joules)}, {"watts", of(e.watts(e.joules))}};
  auto& parts = j["components"] = Json::array();
  for (const auto& c : e.components) {
    parts.push_back({{"name", c.name},
                     {"joules", of(c.joules)},
                     {"watts", of(e.watts(c.joules))},
                     {"counted", c.counted},
                     {"fitted", c.fitted},
                     {"terms", Json::array()}});
    for (const auto t : c.of) parts.back()["terms"].push_back(name(t));
  }
  j["missing"] = Json::array();
  for (const auto t : e.missing) j["missing"].push_back(name(t));
  return j;
}

Json of(const Simulation& s, const MachineDescription& m, const Sensitivity* why) {
  auto j = Json::parse(to_json(s, why));
  j["pattern"] = name(s.pattern);
  j["judged"] = Json();
  if (const auto* const known = m.judgement(s.pattern))
    for (const auto& [key, cells] : {std::pair{"fitted", &known->fitted}, {"predicted", &known->predicted}})
      j["judged"][key] = {{"cells", cells->cells}, {"mean_error", cells->mean}, {"worst_error", cells->worst}};
  j["energy"] = knows_energy(m) ? of(energy(s, m, why)) : Json();
  j["defaults"] = defaults_of(m);
  j["findings"] = of(std::span<const Diagnostic>(s.findings));
  return j;
}
Json of(const std::optional<LowerBound>& b, const Simulation& s) {
  const auto times = b ? times_of(*b, s) : std::nullopt;
  return times ? of(*b, *times) : Json();
}
Json of(const LowerBound& b, double times) {
  Json j{{"ns", b.ns}, {"times", times}, {"latency_ns", b.latency_ns}, {"copies_in_a_row", b.hops}};
  j["cut"] = b.cut.empty() ? Json() : Json{{"name", b.cut}, {"bytes", b.bytes}, {"bytes_per_ns", b.rate}};
  return j;
}
Json of(const MachineDescription& m) { return Json::parse(to_json(m)); }
Json of(const Topology& t) { return Json::parse(to_json(t)); }
Json of(const doctor::Diagnosis& d) { return Json::parse(to_json(d)); }
Json of(const trace::Comparison& c, std::string_view other) { return Json::parse(to_json(c, other)); }

std::vector<Json> lines_of(const trace::Trace& t) {
  const auto text = trace::to_json_lines(t);
  std::vector<Json> all;
  for (std::string_view rest = text; !rest.empty();) all.push_back(Json::parse(sdma::detail::take_line(rest)));
  return all;
}

}  // namespace sdma::json
