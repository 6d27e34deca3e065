// SPDX-License-Identifier: MIT
#pragma once
// Machines and nodes by name, for the functions that take one. Errors are raised.
#include "sdma/simulate/machine.hpp"

#include <optional>
#include <string>

namespace sdma::python {

/// A node: "kfd", "cuda", the name of a layout, or the text of a file. Nothing if both are empty.
std::optional<Topology> topology_of(const std::string& device, const std::string& text, const std::string& file);

}  // namespace sdma::python
