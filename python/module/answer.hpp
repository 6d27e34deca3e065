// SPDX-License-Identifier: MIT
#pragma once
// Answers and errors on their way to Python.
//
//   return to_python(json::of(report));            dict, list, str, int, float, bool, None
//   if (!s) fail(s.error());                       raises sdma.Error with all of them
//   fail("the device is closed", "open another");  raises sdma.Error with one
//   one_of<Ordering>(word, "an order", orders);    what a word means, or ValueError with all words
//
// Call these functions only while this thread holds the interpreter's lock. Errors of Python itself, such as no memory,
// are thrown as pybind11::error_already_set.
#include "json/json.hpp"
#include "sdma/core/result.hpp"

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace sdma::python {

namespace py = pybind11;

inline py::object to_python(const json::Json& j) {
  using Kind = json::Json::value_t;
  switch (j.type()) {
    case Kind::object: {
      py::dict out;
      for (const auto& [key, value] : j.items()) out[py::str(key)] = to_python(value);
      return out;
    }
    case Kind::array: {
      py::list out(j.size());
      for (std::size_t i = 0; i < j.size(); ++i) out[i] = to_python(j[i]);
      return out;
    }
    case Kind::string: {
      const auto& text = j.get_ref<const std::string&>();
      // A file's name need not be UTF-8.
      auto* s = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
      if (!s) throw py::error_already_set();
      return py::reinterpret_steal<py::object>(s);
    }
    case Kind::boolean: return py::bool_(j.get<bool>());
    case Kind::number_unsigned: return py::int_(j.get<std::uint64_t>());
    case Kind::number_integer: return py::int_(j.get<std::int64_t>());
    case Kind::number_float: return py::float_(j.get<double>());
    default: return py::none();
  }
}

[[noreturn]] inline void fail(const std::vector<Diagnostic>& all) {
  const auto type = py::module_::import("sdma.errors").attr("Error");
  std::string text;
  for (const auto& d : all) text += (text.empty() ? "" : "\n") + to_string(d);
  const auto error = type(to_python(text), to_python(json::of(std::span(all))));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

[[noreturn]] inline void fail(const Diagnostic& d) { fail(std::vector{d}); }

[[noreturn]] inline void fail(std::string message, std::string hint) {
  fail(Diagnostic{.where = "sdma", .message = std::move(message), .hint = std::move(hint)});
}

/// The places of errors begin with the schedule's file, as the tool prints them.
inline std::vector<Diagnostic> of_file(const std::string& file, std::vector<Diagnostic> all) {
  for (auto& d : all) d.where = file + (d.where.empty() ? "" : ": " + d.where);
  return all;
}

/// `what`: what such words are, with its article.
template <class T>
T one_of(const std::string& word, const char* what, std::initializer_list<std::pair<const char*, T>> all) {
  std::string known;
  for (const auto& [name, value] : all) {
    if (name == word) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw py::value_error(fmt::format("'{}' is not {}: pass one of {}", word, what, known));
}

/// The value, or the exception.
template <class T, class E> T value_or_fail(Result<T, E> r) {
  if (!r) fail(r.error());
  return *std::move(r);
}

}  // namespace sdma::python
