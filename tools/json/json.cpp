// SPDX-License-Identifier: MIT
#include "json.hpp"

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

std::string line(const Json& j) { return j.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"; }
std::string document(const Json& j) { return j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"; }

}  // namespace sdma::json
