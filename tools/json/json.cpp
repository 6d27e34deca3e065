// SPDX-License-Identifier: MIT
#include "json.hpp"

#include "sdma/core/number.hpp"

#include <algorithm>

namespace sdma::json {
namespace {

/// The number at the beginning of `text`, which it then leaves out.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const bool hex = text.starts_with("0x");
  const auto digits = hex ? "0123456789abcdef" : "0123456789";
  const auto end = std::min(text.find_first_not_of(digits, hex ? 2 : 0), text.size());
  const auto n = end == 0 ? std::nullopt : parse_count(std::string(text.substr(0, end)));
  if (n) text.remove_prefix(end);
  return n;
}

}  // namespace

Position position_of(std::string_view where) {
  // A file's name may contain a colon, too: its position is followed by the end, a colon or a blank.
  for (auto at = where.find(':'); at != where.npos; at = where.find(':', at + 1)) {
    auto rest = where.substr(at + 1);
    const bool hex = rest.starts_with("0x");
    const auto first = take_number(rest);
    if (!first) continue;
    Position p{.file = std::string(where.substr(0, at))};
    (hex ? p.offset : p.line) = first;
    if (!hex && rest.starts_with(':')) {
      auto after = rest.substr(1);
      if (const auto column = take_number(after)) p.column = column, rest = after;
    }
    if (rest.empty() || rest[0] == ':' || rest[0] == ' ') return p;
  }
  return {};
}

Json of(const Diagnostic& d) {
  Json j{{"rule", d.rule}, {"severity", name(d.severity)}, {"where", d.where}};
  const auto p = position_of(d.where);
  if (!p.file.empty()) j["file"] = p.file;
  if (p.line) j["line"] = *p.line;
  if (p.column) j["column"] = *p.column;
  if (p.offset) j["offset"] = *p.offset;
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
