#pragma once
// What --trace=FILE writes, in the form that FILE's name asks for.
#include "sdma/trace/trace.hpp"

#include <string>

namespace sdma::tool {

/// Writes JSON Lines to a NAME.jsonl, and what ui.perfetto.dev draws to any other. Returns an exit code; an error has been
/// reported.
int save_trace(const trace::Trace&, const std::string& path);

}  // namespace sdma::tool
