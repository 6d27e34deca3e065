#pragma once
// Messages for people, on standard error: "file:0xOFFSET: error[rule]: message", and a hint on the next line. Coloured only on
// a terminal, and not if NO_COLOR is set or TERM is "dumb". Never on standard output, which is for data.
#include "sdma/core/diagnostic.hpp"

#include <string>

namespace sdma::tool {

void report(const Diagnostic&);
/// The name of an input in messages.
inline std::string shown(const std::string& path) { return path == "-" ? "stdin" : path; }
/// "sdma: error: message", and the hint.
void complain(const std::string& message, const std::string& hint = "");

}  // namespace sdma::tool
