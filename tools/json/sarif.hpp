// SPDX-License-Identifier: MIT
#pragma once
// A SARIF 2.1.0 log (OASIS), which code hosts show beside the lines of a change.
//
//   SarifLog log{.exit_code = code};
//   log.results.push_back({diagnostic, "ring.bin"});     // findings, and inputs that cannot be read
//   log.messages.push_back(diagnostic);                  // what else went wrong, such as a wrong option
//   puts(json::document(json::sarif(log)).c_str());
//
// The log has one run, with a result for each finding: its level, its text with the hint, and its place, which is a
// line and a column, or the byte of a ring. Each rule that occurs has the text of its section in docs/rules.md. Names
// of files stay relative, as percent-encoded URIs, so call the tool in the root of the repository. A run that did not
// do what was asked, for another reason than its findings, has executionSuccessful false.
//
// Pure functions; any thread may call them.
#include "json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sdma::json {

/// `file`: the input that the finding is about, if the finding does not name one.
struct SarifResult {
  Diagnostic diagnostic{};
  std::string file{};
};
struct SarifLog {
  std::vector<SarifResult> results{};
  std::vector<Diagnostic> messages{};
  int exit_code{};
};
Json sarif(const SarifLog&);

/// A file's name as a URI: percent-encoded, and with a scheme if the name is absolute.
std::string uri_of(std::string_view file);

}  // namespace sdma::json
