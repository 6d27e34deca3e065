// SPDX-License-Identifier: MIT
#include "sdma/core/diagnostic.hpp"

#include <fmt/format.h>

#include <utility>

namespace sdma { inline namespace v0_3 {

std::string to_string(const FilePosition& p) {
  if (p.offset != FilePosition::kNoOffset) return fmt::format("{}:{:#06x}", p.file, p.offset);
  if (p.line == 0) return p.file;
  return p.column == 0 ? fmt::format("{}:{}", p.file, p.line) : fmt::format("{}:{}:{}", p.file, p.line, p.column);
}

Diagnostic error_at(FilePosition at, std::string message, std::string hint) {
  return {.where = to_string(at), .at = std::move(at), .message = std::move(message), .hint = std::move(hint)};
}

std::string to_string(const Diagnostic& d) {
  std::string s;
  if (!d.where.empty()) s.append(d.where).append(": ");
  s += name(d.severity);
  if (!d.rule.empty()) s.append("[").append(d.rule).append("]");
  s.append(": ").append(d.message);
  if (!d.excerpt.empty()) s.append("\n").append(d.excerpt);
  if (!d.hint.empty()) s.append("\n  hint: ").append(d.hint);
  return s;
}

}}  // namespace sdma::v0_3
