// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "json/json.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>

namespace sdma::tool {
namespace {

bool as_json = false;

bool coloured() {
  static const bool yes = [] {
    const char *none = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
    return isatty(STDERR_FILENO) && !(none && *none) && term && std::string_view(term) != "dumb";
  }();
  return yes;
}

std::string paint(const Diagnostic& d, std::string s) {
  const std::string word(name(d.severity));
  // The severity follows the location and ": ", or is at the beginning.
  const auto at = d.where.empty() ? 0 : d.where.size() + 2;
  const auto length = word.size() + (d.rule.empty() ? 0 : d.rule.size() + 2);
  const char* colour = d.severity == Severity::error     ? "\033[1;31m"
                       : d.severity == Severity::warning ? "\033[1;35m"
                                                         : "\033[1;36m";
  s.insert(at + length, "\033[0m");
  s.insert(at, colour);
  return s;
}

}  // namespace

void report(const Diagnostic& d) {
  auto s = as_json ? json::line(json::of(d)) : to_string(d) + "\n";
  if (!as_json && coloured()) s = paint(d, std::move(s));
  // A failure to write to standard error cannot be reported.
  std::fwrite(s.data(), 1, s.size(), stderr);
}

void report_as_json() { as_json = true; }

void complain(const std::string& message, const std::string& hint) {
  report({.where = "sdma", .message = message, .hint = hint});
}

}  // namespace sdma::tool
