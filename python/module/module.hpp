#pragma once
// The extension `sdma._sdma`: what the package in python/sdma consists of below its classes. The manual for users is
// python/sdma/__init__.pyi; nothing else imports this extension, so its names may change.
//
//   packets.cpp    dwords and values
//   schedule.cpp   schedules: read, built and printed
//
// Every function returns values of Python, or raises an exception.
#include "long_call.hpp"

#include <pybind11/pybind11.h>

namespace sdma::python {

namespace py = pybind11;

void add_packets(py::module_&);
void add_schedule(py::module_&);

}  // namespace sdma::python
