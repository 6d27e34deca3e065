// SPDX-License-Identifier: MIT
#pragma once
// Parses and checks a schedule: has(checked("gpus 1\n..."), "race"). The
// text needs no first line; checked_whole() takes a text that has one.
#include "sdma/check/check.hpp"
#include "support/catch.hpp"

#include <algorithm>

namespace sdma::test {

inline CheckReport checked_whole(const std::string& text, CheckOptions o = {}) {
  SourceMap map;
  const auto s = parse_schedule(text, "case.sdma", {.map = &map});
  if (!s)
    for (const auto& e : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  o.map = &map;
  return check(*s, o);
}
inline CheckReport checked(const std::string& text, CheckOptions o = {}) {
  return checked_whole("sdma 1\n" + text + "\n", std::move(o));
}
inline bool has(const CheckReport& r, std::string_view rule) {
  return std::any_of(r.findings.begin(), r.findings.end(), [&](const auto& f) { return f.diagnostic.rule == rule; });
}
/// The findings, one line each: "rule: message".
inline std::string said(const CheckReport& r) {
  std::string out;
  for (const auto& f : r.findings) out += f.diagnostic.rule + ": " + f.diagnostic.message + "\n";
  return out;
}

}  // namespace sdma::test
