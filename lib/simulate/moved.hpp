// SPDX-License-Identifier: MIT
#pragma once
// Machines that are a little off in one parameter, and how an interval follows from the times on them. Internal.
//
//   auto base = Base::of(schedule, machine, options);               // which parameters its time can depend on
//   const auto all = nearby(machine);                               // the same list for every schedule
//   const auto times = base->near(all);                             // with each of them, in one run if it can be
//   variance(machine, all, base->result().ns, times)
//
// A parameter whose error is independent is moved to both ends of its uncertainty: the greater deviation counts. One in
// the covariance is moved by a percent for its slope: a rate to both sides, because it may be as fast as another one,
// so that the time has a kink there; a time to one side.
#include "world.hpp"

#include <memory>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

/// A machine that is off in one parameter.
struct Nearby {
  std::size_t parameter{};
  double value{};
};

/// A simulation of times alone, and the same on other machines. The schedule and the machine have to stay.
class Base {
 public:
  static Result<Base, std::vector<Diagnostic>> of(const Schedule&, const MachineDescription&, const SimulateOptions&);
  const Simulation& result() const noexcept { return result_; }
  /// The times on a machine with the same topology. Not after `near`.
  Result<Simulation, std::vector<Diagnostic>> on(const MachineDescription& m) {
    return world_->again(World<double>::costs_of(m));
  }

  using Times = World<double>::Times;
  /// The times with each of these values: most of them from one run. If the schedule cannot be simulated with a value,
  /// that has the times of the machine itself.
  std::vector<Times> near(std::span<const Nearby>);
  /// The first such value.
  struct Failure {
    Nearby with{};
    std::vector<Diagnostic> why{};
  };
  const std::optional<Failure>& failure() const noexcept { return failure_; }
  /// Has SimulateOptions::stop ended a simulation of `near`? That is a failure, too, and no other has begun since.
  bool stopped() const noexcept { return stopped_; }

 private:
  std::unique_ptr<World<double>> world_{};
  std::unique_ptr<World<Lanes<kLanes>>> lanes_{};
  const Schedule* schedule_{};
  const MachineDescription* machine_{};
  SimulateOptions options_{};
  Simulation result_{};
  World<double>::Needs needs_{};
  World<double>::Uses uses_{};
  std::optional<Failure> failure_{};
  bool stopped_ = false;

  template <class Time> void fails(const World<Time>&, const Nearby&, std::vector<Diagnostic> why);
  bool depends(const Nearby&) const;
  bool steers(const Nearby&) const;
  void alone(const Nearby&, Times&);
  std::vector<std::size_t> at_once(std::span<const Nearby>, std::span<const std::size_t> some, std::vector<Times>&);
  std::vector<std::size_t> weighty(std::span<const Nearby>, std::span<const std::size_t> some,
                                   std::span<const Times>) const;
};

/// As near as a parameter can be to the value.
Nearby possible(const MachineDescription&, const Nearby&);
std::vector<Nearby> nearby(const MachineDescription&);

/// Does the machine have a covariance of this parameter with others?
bool in_covariance(const MachineDescription&, std::size_t parameter);

/// The variance of a value that is `base` on the machine, and `moved` on each of those nearby.
double variance(const MachineDescription&, std::span<const Nearby>, double base, std::span<const double> moved);

/// The alternatives of the machine; and those that change the time `ns` by more than a percent.
std::vector<Nearby> alternatives(const MachineDescription&);
std::vector<Sensitivity::Alternative> alternatives_of(const MachineDescription&, double ns, std::span<const Nearby>,
                                                      std::span<const Base::Times>);

}}}  // namespace sdma::v0_3::detail
