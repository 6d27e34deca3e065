// SPDX-License-Identifier: MIT
#pragma once
// Answers and errors on their way to Python.
//
//   return to_python(json::of(report));            dict, list, str, int, float, bool, None
//   if (!s) fail(s.error());                       raises sdma.Error with all of them
//   fail("the device is closed", "open another");  raises sdma.Error with one
//
// Call these functions only while this thread holds the interpreter's lock. Errors of Python itself, such as no memory,
// are thrown as pybind11::error_already_set.
#include "json/json.hpp"
#include "sdma/core/result.hpp"

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

namespace sdma::python {

namespace py = pybind11;

py::object to_python(const json::Json&);

[[noreturn]] void fail(const std::vector<Diagnostic>&);
[[noreturn]] void fail(const Diagnostic&);
[[noreturn]] void fail(std::string message, std::string hint);

/// The value, or the exception.
template <class T, class E> T value_or_fail(Result<T, E> r) {
  if (!r) fail(r.error());
  return *std::move(r);
}

}  // namespace sdma::python
