// SPDX-License-Identifier: MIT
// Machines to simulate, and the nodes that they are.
#include "answer.hpp"
#include "core/nearest.hpp"
#include "described.hpp"
#include "json/json.hpp"
#include "module.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/device/open.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::python {
namespace {

std::vector<std::string_view> parameters() {
  std::vector<std::string_view> all;
  for (std::size_t i = 0; i < kCosts; ++i) all.push_back(name(static_cast<Cost>(i)));
  for (const auto& rate : kLinkRates) all.push_back(rate.name);
  return all;
}
std::size_t known(const std::string& parameter) {
  const auto all = parameters();
  const auto at = std::find(all.begin(), all.end(), parameter);
  if (at == all.end())
    throw py::key_error(
        fmt::format("a machine has no parameter '{}'{}", parameter, did_you_mean(parameter, parameters())));
  return static_cast<std::size_t>(at - all.begin());
}

MachineDescription named(const std::string& layout) {
  if (layout.empty()) return value_or_fail(mi300x_machine());
  if (!names_layout(layout))
    fail(fmt::format("'{}' is not the name of a layout", layout),
         "write mi300x:4, mesh:16 or ring:8; sdma.Machine.read reads a file");
  return value_or_fail(layout_machine(layout));
}
void set(MachineDescription& m, const std::string& parameter, double value) {
  const auto i = known(parameter);
  if (m.set(parameter, value) == Errc::ok) return;
  throw py::value_error(fmt::format("{} cannot be {}: {}", parameter, value,
                                    i >= kCosts ? "a rate is above 0, in GB/s, and the machine has such links"
                                                : fmt::format("its unit is {}", unit(static_cast<Cost>(i)))));
}
double get(const MachineDescription& m, const std::string& parameter) {
  const auto i = known(parameter);
  if (i < kCosts) return m[static_cast<Cost>(i)];
  throw py::key_error(fmt::format("{} belongs to each link: machine.topology lists them", parameter));
}

/// A node by the name of a device, of a layout, or from the text of a file.
Topology node(const std::string& device, const std::string& text, const std::string& file) {
  if (!text.empty()) return value_or_fail(topology_from_json(text, file));
  if (device.empty()) return value_or_fail(mi300x(8));
  if (names_layout(device)) return value_or_fail(layout(device));
  const auto kind = device_kind(device);
  if (kind == DeviceKind::kfd) return value_or_fail(kfd_topology());
  if (kind && kind != DeviceKind::soft) return value_or_fail(open_device(*kind))->topology();
  fail(fmt::format("'{}' is not a node", device), "write kfd, cuda, rocr, or a layout such as ring:8");
}
/// Is this word a node, and not a file?
bool names_node(const std::string& word) {
  const auto kind = device_kind(word);
  return names_layout(word) || (kind && kind != DeviceKind::soft);
}

}  // namespace

void add_machine(py::module_& m) {
  Described<MachineDescription>(m, "Machine")
      .def(py::init(&named), py::arg("layout") = "")
      .def_static(
          "parse",
          [](const std::string& text, const std::string& file) { return value_or_fail(machine_from_json(text, file)); },
          py::arg("text"), py::arg("file") = "machine")
      .def("copy", [](const MachineDescription& machine) { return machine; })
      .def("__getitem__", get)
      .def("__setitem__", set)
      .def("to_json", [](const MachineDescription& machine) { return to_json(machine); })
      .def("to_dict", [](const MachineDescription& machine) { return to_python(json::of(machine)); })
      .def("__str__", [](const MachineDescription& machine) { return to_table(machine); })
      .def("__eq__",
           [](const MachineDescription& a, const py::object& b) {
             return py::isinstance<MachineDescription>(b) && a == b.cast<const MachineDescription&>();
           })
      .def_property_readonly("name", [](const MachineDescription& machine) { return machine.name; })
      .def_property_readonly("gpus", [](const MachineDescription& machine) { return machine.topology.gpus.size(); });
  m.def("names_node", names_node);
  m.def("names_layout", [](const std::string& word) { return names_layout(word); });
  m.def("topology", [](const std::string& device, const std::string& text, const std::string& file) {
    const auto t = node(device, text, file);
    return py::make_tuple(to_python(json::of(t)), to_table(t));
  });
}

std::optional<Topology> topology_of(const std::string& device, const std::string& text, const std::string& file) {
  if (device.empty() && text.empty()) return {};
  return node(device, text, file);
}

}  // namespace sdma::python
