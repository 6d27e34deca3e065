#pragma once
// Writes the trace of --trace=FILE, in the form that FILE's suffix selects.
#include "sdma/trace/form.hpp"

#include <string>

namespace sdma::tool {

/// Returns an exit code. Reports any error.
int save_trace(const trace::Trace&, const std::string& path, trace::Form);

}  // namespace sdma::tool
