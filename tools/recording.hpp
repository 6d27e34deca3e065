#pragma once
// What --trace=FILE writes, in the form that FILE's name asks for.
#include "sdma/trace/form.hpp"

#include <string>

namespace sdma::tool {

/// Returns an exit code; an error has been reported.
int save_trace(const trace::Trace&, const std::string& path, trace::Form);

}  // namespace sdma::tool
