// SPDX-License-Identifier: MIT
#pragma once
// Classes and functions of the extension with their docstrings, which come from the manual python/sdma/_sdma.pyi:
//
//   Described<QueueRef>(m, "Queue").def("copy", &QueueRef::copy);    // the docstrings of Queue and of Queue.copy
//
// What the manual leaves out has no docstring; a test compares the names of both.
#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sdma::python {

/// The docstring of "CLASS" or "CLASS.MEMBER", as the extension has it; empty if the manual does not have the name.
const char* manual(std::string_view name);

template <class T, class... Options> class Described : public pybind11::class_<T, Options...> {
  using Base = pybind11::class_<T, Options...>;

 public:
  template <class... Extra>
  Described(pybind11::handle scope, const char* name, const Extra&... extra)
      : Base(scope, name, manual(name), extra...), name_(name) {}

  /// A method, or a constructor, which has no name.
  template <class First, class... Rest> Described& def(First&& first, Rest&&... rest) {
    if constexpr (std::is_convertible_v<First, const char*>) Base::def(first, std::forward<Rest>(rest)..., of(first));
    else Base::def(std::forward<First>(first), std::forward<Rest>(rest)..., of("__init__"));
    return *this;
  }
  template <class... Rest> Described& def_static(const char* name, Rest&&... rest) {
    Base::def_static(name, std::forward<Rest>(rest)..., of(name));
    return *this;
  }
  template <class Get> Described& def_property_readonly(const char* name, Get&& get) {
    Base::def_property_readonly(name, std::forward<Get>(get), of(name));
    return *this;
  }

 private:
  const char* of(const char* member) const { return manual(name_ + "." + member); }

  std::string name_;
};

}  // namespace sdma::python
