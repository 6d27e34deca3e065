// SPDX-License-Identifier: MIT
#include "module.hpp"
#include "described.hpp"
#include "sdma/core/version.hpp"

namespace {

constexpr std::chrono::seconds kLastWait{5};

}  // namespace

PYBIND11_MODULE(_sdma, m) {
  pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function([] {
    const pybind11::gil_scoped_release unlocked;
    sdma::python::Running::all().wait_for_all(kLastWait);
  }));
  // A docstring begins with the signature that the manual gives.
  pybind11::options options;
  options.disable_function_signatures();
  m.def("manual", [](const std::string& name) { return sdma::python::manual(name); });
  m.attr("version") = sdma::version().string;
  sdma::python::add_packets(m);
  sdma::python::add_schedule(m);
  sdma::python::add_machine(m);
  sdma::python::add_trace(m);
  sdma::python::add_verbs(m);
  sdma::python::add_device(m);
  sdma::python::add_files(m);
}
