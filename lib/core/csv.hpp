// SPDX-License-Identifier: MIT
#pragma once
// Lines of CSV files: commas between fields, quotes around those that contain a comma. Internal.
//
//   csv_fields("a, \"b,c\"")     {"a", "b,c"}
//   csv_field("b,c")            "\"b,c\""
//
// Allocates. Pure.
#include "words.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The fields of a line, without blanks around them; nothing if a quote is not closed or is inside a field.
inline std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> out{""};
  bool quoted = false, ended = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = line[i];
    if (quoted && c == '"' && line.substr(i + 1).starts_with('"')) out.back() += line[++i];
    else if (quoted && c == '"') quoted = false, ended = true;
    else if (quoted) out.back() += c;
    else if (c == ',') out.emplace_back(), ended = false;
    else if (c == '"' && trimmed(out.back()).empty() && !ended) out.back().clear(), quoted = true;
    else if (c == '"' || (ended && c != ' ')) return {};
    else if (!ended) out.back() += c;
  }
  if (quoted) return {};
  for (auto& f : out) f = std::string(trimmed(f));
  return out;
}

/// A text as a field, in quotes if it needs them: RFC 4180.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

}}}  // namespace sdma::v0_3::detail
