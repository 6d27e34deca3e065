// SPDX-License-Identifier: MIT
#pragma once
// Shared by simulate, compare and calibrate: the machine that a simulation uses, from a file and from options.
//
//   add_machine(verb, options.machine);                    --machine PATH, --parameter NAME=VALUE
//   auto m = load_machine(options.machine);                reports what is wrong with the file or with a parameter
#include "sdma/simulate/machine.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::tool {

class VerbOptions;

struct MachineOptions {
  std::string path{};  ///< "": eight MI300X
  std::vector<std::pair<std::string, std::string>> changes{};
};

void add_machine(VerbOptions&, MachineOptions&);
/// The machine of this file; eight MI300X for "".
Result<MachineDescription, Diagnostic> machine_of(const std::string& path);
/// The parameter that an option names; nothing after an error, which has been reported.
std::optional<Cost> parameter_named(const std::string& option, const std::string& word);
/// The machine; nothing after an error, which has been reported.
std::optional<MachineDescription> load_machine(const MachineOptions&);
/// The exit code after load_machine has returned nothing.
int exit_code(const MachineOptions&);

}  // namespace sdma::tool
