// SPDX-License-Identifier: MIT
#pragma once
// A recording as Python holds it: constant, and shared by those who draw it.
#include "sdma/trace/trace.hpp"

#include <memory>
#include <string>

namespace sdma::python {

struct Recording {
  std::string name{};
  std::shared_ptr<const trace::Trace> trace{};
};

}  // namespace sdma::python
