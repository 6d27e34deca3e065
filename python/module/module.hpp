// SPDX-License-Identifier: MIT
#pragma once
// The extension `sdma._sdma`: what the package in python/sdma consists of below its classes. The manual of its
// classes is python/sdma/_sdma.pyi. Nothing else imports this extension, so the names of its functions may change.
//
//   manual.cpp     docstrings, from that manual
//   packets.cpp    dwords and values
//   schedule.cpp   schedules: read, built and printed
//   verbs.cpp      calculations: check, simulate, sweep, explore
//   machine.cpp    machines to simulate, and nodes
//   trace.cpp      recordings
//   device.cpp     devices, their memory, and runs
//   files.cpp      doctor, calibrate, and the plans of collectives
//
// Every function returns values of Python, or raises an exception.
#include "long_call.hpp"
#include "sdma/simulate/machine.hpp"
#include "sdma/trace/trace.hpp"

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

namespace sdma::python {

namespace py = pybind11;

void add_packets(py::module_&);
void add_schedule(py::module_&);
void add_machine(py::module_&);
void add_trace(py::module_&);
void add_verbs(py::module_&);
void add_device(py::module_&);
void add_files(py::module_&);

/// For functions that take a node: "kfd", "cuda", the name of a layout, or the text of a file. Nothing if both
/// are empty. Errors are raised.
std::optional<Topology> topology_of(const std::string& device, const std::string& text, const std::string& file);

/// A recording as Python holds it: constant, and shared by those who draw it.
struct Recording {
  std::string name{};
  std::shared_ptr<const trace::Trace> trace{};
};

}  // namespace sdma::python
