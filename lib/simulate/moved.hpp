// SPDX-License-Identifier: MIT
#pragma once
// Machines that are a little off in one parameter, and how an interval follows from the times on them. Internal.
//
//   const auto base = base_of(schedule, machine, options);          // which parameters its time can depend on
//   const auto all = nearby(machine);                               // the same list for every schedule
//   for (const auto& n : all) times.push_back(...);                 // on Variable{machine}.with(n.parameter, n.value)
//   variance(machine, all, base.result.ns, times)
//
// A parameter whose error is independent is moved to both ends of its uncertainty: the greater deviation counts. One in
// the covariance is moved by a percent for its slope: a rate to both sides, because it may be as fast as another one,
// so that the time has a kink there; a time to one side.
#include "world.hpp"

#include <functional>

namespace sdma::inline v0::detail {

/// A machine of which one parameter at a time has another value, which stays possible.
class Variable {
 public:
  explicit Variable(const MachineDescription& m) : m_(m), now_(m) {}
  const MachineDescription& with(std::size_t parameter, double value);

 private:
  const MachineDescription& m_;
  MachineDescription now_;
  std::size_t last_ = 0;
};

/// A simulation, and which others would be the same.
struct Base {
  Simulation result{};
  World::Needs needs{};
  bool depends(const MachineDescription& from, const MachineDescription& to) const;
};
Result<Base, std::vector<Diagnostic>> base_of(const Schedule&, const MachineDescription&, const SimulateOptions&);

/// Only times are wanted of a simulation that is repeated: no trace, no contents.
SimulateOptions times_alone(const SimulateOptions&);
/// The simulation's times, without texts.
Result<Simulation, std::vector<Diagnostic>> times(const Schedule&, const MachineDescription&, const SimulateOptions&);

/// A machine that is off in one parameter.
struct Nearby {
  std::size_t parameter{};
  double value{};
};
std::vector<Nearby> nearby(const MachineDescription&);

/// Does the machine have a covariance of this parameter with others?
bool in_covariance(const MachineDescription&, std::size_t parameter);

/// The variance of a value that is `base` on the machine, and `moved` on each of those nearby.
double variance(const MachineDescription&, std::span<const Nearby>, double base, std::span<const double> moved);

/// The alternatives of the machine that change the time `ns` by more than a percent. `time`: with another machine.
std::vector<Sensitivity::Alternative> alternatives_of(const MachineDescription&, double ns,
                                                      const std::function<double(const MachineDescription&)>& time);

}  // namespace sdma::inline v0::detail
