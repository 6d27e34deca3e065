// SPDX-License-Identifier: MIT
#pragma once
// Machines that are a little off in one parameter, and how an interval follows from the times on them. Internal.
//
//   auto base = Base::of(schedule, machine, options);               // which parameters its time can depend on
//   const auto all = nearby(machine);                               // the same list for every schedule
//   for (const auto& n : all) times.push_back(base->ns(...));       // on Variable{machine}.with(n.parameter, n.value)
//   variance(machine, all, base->result().ns, times)
//
// A parameter whose error is independent is moved to both ends of its uncertainty: the greater deviation counts. One in
// the covariance is moved by a percent for its slope: a rate to both sides, because it may be as fast as another one,
// so that the time has a kink there; a time to one side.
#include "world.hpp"

#include <functional>
#include <memory>

namespace sdma { inline namespace v0_3 { namespace detail {

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

/// A simulation of times alone, and the same on other machines. The schedule and the machine have to stay.
class Base {
 public:
  static Result<Base, std::vector<Diagnostic>> of(const Schedule&, const MachineDescription&, const SimulateOptions&);
  const Simulation& result() const noexcept { return result_; }
  /// Can a machine with the same topology have other times?
  bool depends(const MachineDescription&) const;
  /// The times on a machine with the same topology.
  Result<Simulation, std::vector<Diagnostic>> on(const MachineDescription& m) { return world_->again(m); }

 private:
  std::unique_ptr<World> world_{};
  const MachineDescription* machine_{};
  Simulation result_{};
  World::Needs needs_{};
};

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

}}}  // namespace sdma::v0_3::detail
