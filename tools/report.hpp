// SPDX-License-Identifier: MIT
#pragma once
// Messages for people, on standard error: "file:0xOFFSET: error[rule]: message", and a hint on the next line. Coloured
// only on a terminal, and not if NO_COLOR is set or TERM is "dumb". Never on standard output, which is for data.
//
// With --json, each message is one JSON object on a line of its own, which share/schemas/message.json describes: a
// program that reads the answer can read in the same way why there is none.
#include "sdma/core/diagnostic.hpp"

#include <string>

namespace sdma::tool {

void report(const Diagnostic&);
/// All later messages are JSON.
void report_as_json();
/// The name of an input in messages.
inline std::string shown(const std::string& path) { return path == "-" ? "stdin" : path; }
/// "sdma: error: message", and the hint.
void complain(const std::string& message, const std::string& hint = "");

}  // namespace sdma::tool
