// SPDX-License-Identifier: MIT
#pragma once
// The machine that --machine and --through name, for small tools that simulate. Ends the program with an error if there
// is none: no such file or layout, or a file that describes neither a machine nor a node.
//
//   const SimulatedMachine s{arguments};            // reads both options
//   const auto m = s.open();
//
// One thread.
#include "arguments.hpp"
#include "examples/support.hpp"
#include "sdma/simulate/machine.hpp"

#include <string>

namespace sdma::tool {

class SimulatedMachine {
 public:
  SimulatedMachine() = default;
  explicit SimulatedMachine(Arguments& a) : name_(a.word("--machine", "")), through_(a.word("--through", "")) {
    if (!through_.empty() && through_ != "rings" && through_ != "hip")
      a.fail("--through: '" + through_ + "' is not rings or hip");
  }
  /// The first option that was given; "" if none was.
  std::string option() const { return !name_.empty() ? "--machine" : through_.empty() ? "" : "--through"; }
  MachineDescription open() const {
    auto m = example::must(machine_named(name_));
    if (through_ == "hip") through_hip(m);
    return m;
  }

 private:
  std::string name_{}, through_{};
};

}  // namespace sdma::tool
