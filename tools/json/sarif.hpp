// SPDX-License-Identifier: MIT
#pragma once
// Findings as a SARIF 2.1.0 log, which code hosts show beside the lines of a change.
//
//   write_text("-", json::document(json::sarif(findings)));
//
// One run, with a rule for each id that occurs (docs/rules.md explains each) and a result for each finding: its level,
// its text with the hint, and its place: a line and a column, or the byte of a ring. A finding without a place has no
// location. Names of files stay as they were given, so call the tool in the root of the repository.
// Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
#include "json.hpp"
#include "sdma/core/diagnostic.hpp"

#include <span>

namespace sdma::json {

Json sarif(std::span<const Diagnostic>);

}  // namespace sdma::json
