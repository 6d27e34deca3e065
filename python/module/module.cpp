#include "module.hpp"
#include "sdma/core/version.hpp"

PYBIND11_MODULE(_sdma, m) {
  m.attr("version") = sdma::runtime_version();
  sdma::python::add_packets(m);
  sdma::python::add_schedule(m);
  sdma::python::add_machine(m);
  sdma::python::add_trace(m);
  sdma::python::add_verbs(m);
  sdma::python::add_device(m);
  sdma::python::add_files(m);
}
